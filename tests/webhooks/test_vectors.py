"""contract/webhook-vectors.json: what receivers in any language are tested with holds for ours, and for others'."""

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks.webhooks
from standardwebhooks import Webhook, WebhookVerificationError

from tests.webhooks.receiving import OTHER, SECRET, an_event, delivery
from tradepost.webhooks import VerificationError, verify
from tradepost.webhooks.signature import sign, signed, standard

ROOT = Path(__file__).parents[2]
FILE = ROOT / "contract" / "webhook-vectors.json"
CASES = json.loads(FILE.read_text("utf-8"))
STANDARD = [case for case in CASES if "webhook-signature" in case["headers"]]
VALID = [case for case in CASES if case["valid"]]


def named(cases: list[Any]) -> pytest.MarkDecorator:
    """A test for each case, under its name."""
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


def test_every_kind_of_case_is_there() -> None:
    """The cases have names of their own, say why, and are both of those to accept and of those to refuse."""
    assert len({case["name"] for case in CASES}) == len(CASES) > 30
    assert len({case["valid"] for case in CASES}) == len({case["valid"] for case in STANDARD}) == 2
    shape = {"name", "secrets", "body", "headers", "now", "tolerance", "valid", "reason"}
    assert all(set(case) == shape and case["reason"] for case in CASES)


@named(CASES)
def test_verify_says_what_the_vector_says(case: Any) -> None:
    """`verify` accepts the valid cases, returning their event, and refuses the others."""
    given = (
        case["body"].encode(),
        case["headers"].get("X-Signature-256"),
        case["secrets"],
        case["tolerance"],
    )
    if case["valid"]:
        assert verify(*given, now=case["now"]) == json.loads(case["body"])
    else:
        with pytest.raises(VerificationError):
            verify(*given, now=case["now"])


@named(VALID)
def test_the_service_signs_as_the_vector_says(case: Any) -> None:
    """`sign`, `standard` and `signed` make the headers of each valid case, with one of its secrets."""
    headers, body = case["headers"], case["body"].encode()
    about = headers["webhook-id"], int(headers["webhook-timestamp"])
    (secret,) = (each for each in case["secrets"] if sign(body, each) == headers["X-Signature-256"])
    assert standard(*about, body, secret) == headers["webhook-signature"]
    assert dict(signed(*about, body, secret)) == headers


@named(STANDARD)
def test_the_library_of_standard_webhooks_says_the_same(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a case carries the headers of Standard Webhooks, their library judges it as the vector does."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Then":
            return cls.fromtimestamp(case["now"], tz or UTC)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", Then)
    assert any(accepted(Webhook(secret), case) for secret in case["secrets"]) == case["valid"]


def accepted(webhook: Webhook, case: Any) -> bool:
    try:
        webhook.verify(case["body"], case["headers"])
    except WebhookVerificationError:
        return False
    return True


# --- what docs/webhooks.md tells receivers to write ---

JUDGE = """
import { readFileSync } from "node:fs";
const judged = JSON.parse(readFileSync(0)).map((each) => {
  try {
    const header = each.headers["X-Signature-256"];
    return !!verify(Buffer.from(each.body), header, each.secrets, each.tolerance, each.now);
  } catch {
    return false;
  }
});
console.log(JSON.stringify(judged));
"""


def programs(language: str) -> list[str]:
    """The programs of the documentation, in its order."""
    text = (ROOT / "docs" / "webhooks.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_documented_program_for_node_says_what_the_vectors_say() -> None:
    """The Node.js receiver of the documentation accepts and refuses as the vectors have it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node here")
    (program,) = programs("js")
    ended = subprocess.run(
        [node, "--input-type=module", "--eval", program + JUDGE],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ended.stdout) == [case["valid"] for case in CASES]


def test_the_documented_programs_for_python_work() -> None:
    """Those of the documentation keep an event that is good, and answer 401 to one that is not."""
    ours, standards = programs("python")
    kept: list[Any] = []
    known: dict[str, Any] = {"keep": kept.append}
    exec(ours, known)
    sent, other = delivery(an_event()), delivery(an_event(), secret=OTHER)
    assert [known["receive"](each.body, each.headers, [SECRET]) for each in (sent, other)] == [204, 401]
    known = {"secret": SECRET, "body": sent.body, "headers": sent.headers}
    exec(standards, known)
    assert [known["event"]] == kept == [json.loads(sent.body)]
