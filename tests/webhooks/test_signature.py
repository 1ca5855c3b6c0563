"""Signatures: what the service signs its receiver verifies, and nothing else."""

import json
import shutil
import subprocess
import sys
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from tests.webhooks.receiving import OTHER, SECRET, an_event, delivery
from tradepost.webhooks import VerificationError, signature, verify
from tradepost.webhooks.signature import sign, signed, standard

NOW = 1_795_162_531.0
AT = "2026-11-20T08:15:31.000Z"

SECRETS = st.text(min_size=1) | st.binary(min_size=24, max_size=64).map(
    lambda key: f"whsec_{b64encode(key).decode()}"
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=5,
)
EVENTS = st.dictionaries(st.text(), VALUES, max_size=4).map(lambda members: {**members, "signedat": AT})


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """An event in any layout that JSON allows."""
    indent = draw(st.sampled_from([None, 2]))
    return json.dumps(draw(EVENTS), ensure_ascii=draw(st.booleans()), indent=indent).encode()


def signed_body(**members: Any) -> bytes:
    return json.dumps({"id": "1", "time": AT, **members}).encode()


def said(body: bytes | str, header: str | None, secrets: Any = SECRET, **given: Any) -> str:
    """Why a delivery is refused."""
    with pytest.raises(VerificationError) as refused:
        verify(body, header, secrets, **{"now": NOW, **given})
    return str(refused.value)


@given(bodies(), SECRETS)
def test_what_is_signed_is_verified(body: bytes, secret: str) -> None:
    """Any event under any secret is verified, as bytes or as text, and comes back as it was."""
    header = sign(body, secret)
    event = json.loads(body)
    assert verify(body, header, secret, now=NOW) == verify(body.decode(), header, secret, now=NOW) == event


@given(bodies(), SECRETS, st.data())
def test_no_bit_can_be_changed(body: bytes, secret: str, data: st.DataObject) -> None:
    """A body of which any bit was changed is refused, and so is a signature of which any character was."""
    header = sign(body, secret)
    bit = data.draw(st.integers(0, 8 * len(body) - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8
    said(bytes(changed), header, secret)
    place = data.draw(st.integers(0, len(header) - 1))
    character = data.draw(st.characters(codec="utf-8").filter(lambda each: each != header[place]))
    said(body, header[:place] + character + header[place + 1 :], secret)


@given(bodies(), SECRETS, SECRETS)
def test_another_secret_is_refused(body: bytes, secret: str, other: str) -> None:
    """What was signed with one secret is refused under every other."""
    if secret != other:
        assert "another secret" in said(body, sign(body, secret), other)


@given(bodies(), st.lists(SECRETS, min_size=1, max_size=4, unique=True), st.data())
def test_any_of_several_secrets_will_do(body: bytes, secrets: list[str], data: st.DataObject) -> None:
    """During a rotation a delivery signed with any of the secrets is verified, wherever it stands among them."""
    header = sign(body, data.draw(st.sampled_from(secrets)))
    assert verify(body, header, secrets, now=NOW) == verify(body, header, iter(secrets), now=NOW)


@given(st.integers(-1000, 1000), st.integers(0, 900), st.sampled_from(["signedat", "time"]))
def test_the_time_has_to_be_near(age: int, tolerance: int, name: str) -> None:
    """Verified are those at most `tolerance` seconds old or early, by `signedat`, or by `time` where there is none."""
    at = datetime.fromtimestamp(NOW - age, UTC)
    body = json.dumps({name: at.isoformat().replace("+00:00", "Z")}).encode()
    header = sign(body, SECRET)
    if abs(age) <= tolerance:
        assert verify(body, header, SECRET, tolerance, now=NOW)
    else:
        reason = "may be a replay" if age > 0 else "in the future"
        assert reason in said(body, header, tolerance=tolerance)


def test_the_time_is_that_of_the_machine_unless_told() -> None:
    """Without `now` a delivery of this moment is verified, and one of ten minutes ago is not."""
    fresh, old = delivery(an_event()), delivery(an_event(), age=600)
    assert verify(fresh.body, fresh.headers["X-Signature-256"], SECRET)
    with pytest.raises(VerificationError, match=r"60\d s ago"):
        verify(old.body, old.headers["X-Signature-256"], SECRET)


@pytest.mark.parametrize(
    "value", ["2026-11-20T08:15:31.000Z", "2026-11-20t08:15:31z", "2026-11-20T10:15:31.000123+02:00"]
)
def test_any_rfc_3339_time_is_read(value: str) -> None:
    """The time may be written with any offset, case and precision."""
    body = signed_body(signedat=value)
    assert verify(body, sign(body, SECRET), SECRET, now=NOW, tolerance=1)


@pytest.mark.parametrize(
    "value", ["", "yesterday", "2026-11-20", "2026-11-20T08:15:31", "25:00", 1_795_162_531, True, {}]
)
def test_an_unreadable_time_is_refused(value: Any) -> None:
    """A `signedat` that names no instant is refused and named; `time` does not stand in for it."""
    body = signed_body(signedat=value)
    assert "`signedat` is not an RFC 3339 time" in said(body, sign(body, SECRET))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff{}",
        b'{"time": "\xff"}',
        b"[" * 100_000,
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_a_signed_body_that_is_no_event_is_refused(body: bytes) -> None:
    """What is not a JSON object in UTF-8 is refused, even when it is signed."""
    assert "The body is signed, but is not" in said(body, sign(body, SECRET))


@given(st.binary(), st.none() | st.text(), st.lists(SECRETS, max_size=2))
def test_nonsense_is_refused_and_nothing_worse(body: bytes, header: str | None, secrets: list[str]) -> None:
    """Whatever arrives ends in a `VerificationError` that says something, never in another exception."""
    assert said(body, header, secrets)


@pytest.mark.parametrize("secrets", ["", [], [""], [SECRET, ""], ["", SECRET]])
def test_an_empty_secret_verifies_nothing(secrets: Any) -> None:
    """No secret, or an empty one among others, is refused: anybody could sign with it."""
    body = signed_body()
    assert "no secret" in said(body, sign(body, ""), secrets)
    assert "no secret" in said(body, sign(body, SECRET), secrets)


def test_text_that_is_no_unicode_is_refused() -> None:
    """A text with half a surrogate pair, as a lenient decoder may make it, is refused like any wrong body."""
    assert "another body" in said('{"time": "\ud800"}', sign(signed_body(), SECRET))


@given(bodies(), st.binary(min_size=24, max_size=64), st.uuids().map(str))
def test_standard_webhooks_verify_it(body: bytes, key: bytes, event_id: str) -> None:
    """The library of Standard Webhooks verifies the headers of a delivery, with the secret as it was issued."""
    secret = f"whsec_{b64encode(key).decode()}"
    at = int(datetime.now(UTC).timestamp())
    headers = dict(signed(event_id, at, body, secret))
    assert Webhook(secret).verify(body, headers) == json.loads(body)
    assert headers["webhook-signature"] == standard(event_id, at, body, secret)
    assert headers["X-Signature-256"] == sign(body, secret)
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (event_id, str(at))


def test_the_two_signatures_have_different_keys() -> None:
    """`X-Signature-256` is keyed with the secret as it stands, so that nobody has to decode it."""
    body = signed_body()
    assert sign(body, SECRET) != sign(body, SECRET.removeprefix("whsec_"))
    assert standard("1", 1, body, SECRET) == standard("1", 1, body, SECRET.removeprefix("whsec_"))
    assert sign(body, SECRET) != sign(body, OTHER)


def test_the_file_can_be_copied_alone(tmp_path: Path) -> None:
    """`signature.py` verifies a delivery by itself, where only Python's own library is."""
    shutil.copy(signature.__file__, tmp_path / "copied.py")
    sent = delivery(an_event())
    (tmp_path / "body").write_bytes(sent.body)
    program = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import copied; "
        "body = pathlib.Path(sys.argv[1], 'body').read_bytes(); "
        "print(copied.verify(body, sys.argv[2], [sys.argv[3]])['type'])"
    )
    words = [str(tmp_path), sent.headers["X-Signature-256"], SECRET]
    assert run("-I", "-S", "-c", program, *words) == "dev.tradepost.order.placed\n"


def test_importing_it_loads_nothing_heavy() -> None:
    """`from tradepost.webhooks import verify` loads modules of Python and of tradepost alone."""
    program = (
        "import sys; before = set(sys.modules); from tradepost.webhooks import verify; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    assert set(run("-c", program).split()) <= sys.stdlib_module_names | {"tradepost"}


def run(*arguments: str) -> str:
    """What a Python of its own prints."""
    ended = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout
