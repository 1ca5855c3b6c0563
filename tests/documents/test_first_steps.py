"""First steps: what the documentation tells to paste works as pasted."""

import html
import http.client
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.flows.process import serving
from tests.rest.test_versions import SECOND
from tests.service import Service

# As much of curl as the first steps use, so that nothing else has to be on the machine.
CURL = f"""#!{sys.executable}
import argparse, sys, urllib.error, urllib.request
parse = argparse.ArgumentParser()
for name in ("-s", "-i"):
    parse.add_argument(name, action="store_true")
parse.add_argument("-H", action="append", default=[])
parse.add_argument("-d")
parse.add_argument("-w", default="")
parse.add_argument("-X")
parse.add_argument("address")
given = parse.parse_args()
fields = dict(each.split(": ", 1) for each in given.H)
body = None if given.d is None else given.d.encode()
method = given.X or ("GET" if body is None else "POST")
request = urllib.request.Request(given.address, body, fields, method=method)
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as error:
    answer = error
if given.i:
    print(f"HTTP/1.1 {{answer.status}}", answer.headers, sep="\\n")
sys.stdout.write(answer.read().decode() + given.w.replace("\\\\n", "\\n"))
print(answer.status, file=sys.stderr)
"""


def steps(page: str) -> list[str]:
    """The lines to paste, of a page of documentation."""
    walk = page.partition('id="first-steps"')[2].partition("<h2")[0]
    return [
        html.unescape(lines) for lines in re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", walk, re.DOTALL)
    ]


def pasted(lines: list[str], folder: Path, key: str) -> Any:
    (folder / "curl").write_text(CURL)
    (folder / "curl").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KEY": key, "no_proxy": "*"}
    script = "\n".join(lines)
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout, done.stderr.split()


def test_the_first_steps_work_as_pasted(new_database: Callable[[str], str], tmp_path: Path) -> None:
    """From an empty shop to a fulfilled order; pasted twice there is still only one of each."""
    with serving(new_database("sqlite")) as process:
        connection = http.client.HTTPConnection("127.0.0.1", process.port)
        connection.request("GET", "/docs")
        _, *lines = steps(connection.getresponse().read().decode())
        connection.close()
        said, statuses = pasted(lines, tmp_path, process.key)
        assert set(statuses) <= {"200", "201"}
        assert '"status":"FULFILLED"' in said
        assert "order.fulfilled" in said
        assert pasted(lines, tmp_path, process.key)[1] == statuses
        for collection in ("products", "users", "orders"):
            assert len(process.call("GET", f"/v1/{collection}")[1]["items"]) == 1


def test_the_first_steps_speak_the_words_of_their_version(new_service: Callable[..., Service]) -> None:
    """The lines of a version that renames members use its names."""
    service = new_service("sqlite", versions=SECOND)
    text = "\n".join(steps(service.get("/v2/docs", key=None).body.decode()))
    assert '"title"' in text
    assert "mail=ada" in text
    assert "pieces" in text
    assert not re.search(r'"(name|price|email|lineItems)\\?"', text.replace('"name": "Ada', ""))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_first_key_is_taken_as_shown(new_service: Callable[..., Service], version: str) -> None:
    """The walk begins with taking a key, and sends it with every request."""
    service = new_service("sqlite", versions=SECOND)
    first, *others = steps(service.get(f"/{version}/docs", key=None).body.decode())
    assert first.startswith("export KEY=")
    for lines in others:
        assert lines.count("curl ") == lines.count("$KEY")
    assert shop.a_user(service)
