"""Tests wait for what happens, not for time to pass."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Nothing tells how far a process of somebody else's is.
POLLS = "tests/engines/process.py"


def sleeps(path: Path) -> Iterator[str]:
    """The calls of anything named `sleep` that are not `sleep(0)`, which yields."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep":
            call = ast.unparse(node)
            if not call.endswith("sleep(0)"):
                yield call


def test_no_test_sleeps() -> None:
    """No test and no example sleeps, other than to yield; one place looks again and again, at other programs."""
    files = [path for folder in ("tests", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): list(sleeps(path)) for path in files}
    assert {path: calls for path, calls in found.items() if calls} == {POLLS: ["time.sleep(0.005)"]}
