"""The committed contracts are what the code says; their diff is the review."""

from pathlib import Path

import pytest

from tradepost.cli.app import app
from tradepost.cli.openapi import contracts

COMMITTED = Path(__file__).parents[2] / "contract"


def status_of_command(*words: str | Path) -> int:
    try:
        app([str(word) for word in words], result_action="return_value")
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else 1
    return 0


@pytest.mark.parametrize("name", list(contracts()))
def test_a_committed_contract_is_the_generated_one(name: str) -> None:
    """What is committed is what the code says; `make contract` renews it."""
    assert (COMMITTED / name).read_text("utf-8") == contracts()[name]


def test_contracts_name_no_service() -> None:
    """A contract is the same wherever it was written."""
    for text in contracts().values():
        assert "127.0.0.1" not in text
        assert "localhost" not in text
        assert ".invalid" not in text


def test_a_contract_can_be_printed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tradepost openapi` prints, writes and compares; what differs is named and shown, briefly, and fails."""
    assert status_of_command("openapi") == 0
    printed = capsys.readouterr().out
    assert printed == contracts()["openapi.json"]
    assert status_of_command("openapi", "--version", "v1") == 0
    assert capsys.readouterr().out == printed
    assert status_of_command("openapi", "--version", "v9") == 1
    assert status_of_command("openapi", "--write", tmp_path) == 0
    assert status_of_command("openapi", "--check", tmp_path) == 0
    capsys.readouterr()
    file = tmp_path / "openapi.json"
    file.write_text(printed.replace('"listOrders"', '"allOrders"'), "utf-8")
    for what in (tmp_path, file):
        assert status_of_command("openapi", "--check", what) == 1
        said = capsys.readouterr().err.splitlines()
        assert str(file) in said[0]
        assert any(line.startswith("-") and "allOrders" in line for line in said)
        assert any(line.startswith("+") and "listOrders" in line for line in said)
        assert len(said) < 30
    assert status_of_command("openapi", "--check", tmp_path / "problems.md") == 0
    (tmp_path / "events.json").unlink()
    assert status_of_command("openapi", "--check", tmp_path) == 1
