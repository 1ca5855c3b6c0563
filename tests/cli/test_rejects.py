"""What `tradepost import` refuses: told, kept aside, and taken once it is mended."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Commands
from tests.cli.files import cells, json_lines, packed, table, user

FORMATS = pytest.mark.parametrize("form", ["csv", "jsonl"])
INSTANT = "2024-02-29T23:59:59.999Z"


def file_of(form: str, path: Path, *rows: dict[str, Any]) -> Path:
    return (table if form == "csv" else json_lines)(path / f"rows.{form}", list(rows))


BAD_USERS = {
    "email": user(1, email="nobody"),
    "name": user(2, name=""),
    "status": user(3, status="SLEEPY"),
    "createdAt": user(4, createdAt="yesterday"),
    "id": user(5, id="d9428888-122b-11e1-b85c-61cd3cbb3210"),
    "createdAt must be the instant in the id": user(
        6, id="018df7c5-6f3f-7000-8000-000000000001", createdAt="2024-02-29"
    ),
    "createdAt must not be in the future": user(7, createdAt="2999-01-01"),
    "deletedAt": user(8, deletedAt=INSTANT),
}


@FORMATS
def test_a_bad_row_is_reported_and_kept_aside_and_the_others_come_in(
    tradepost: Commands, tmp_path: Path, form: str
) -> None:
    """Every bad row is told with its line, member and reason, and kept with it; the rest is in."""
    rows = [user(0), *BAD_USERS.values(), user(99)]
    file = file_of(form, tmp_path, *rows)
    ended = tradepost("import", "users", file)
    assert ended.status == 1
    assert f"{len(rows)} read, 2 imported, 0 already there, {len(BAD_USERS)} rejected" in ended.out
    aside = Path(f"{file}.rejects.{form}")
    kept = (
        cells(aside)
        if form == "csv"
        else [json.loads(line) for line in aside.read_text("utf-8").splitlines()]
    )
    for line, (what, row, found) in enumerate(zip(BAD_USERS, BAD_USERS.values(), kept, strict=True), start=2):
        number = line + (form == "csv")
        assert any(told.startswith(f"line {number}: {what}") for told in ended.err.splitlines()), what
        assert found["reason"].startswith(f"line {number}: {what}")
        assert {name: value for name, value in found.items() if value and name != "reason"} == {
            name: value for name, value in row.items() if value
        }
    assert [each["name"] for each in tradepost.exported("users", tmp_path)] == ["Ada 0", "Ada 99"]


@FORMATS
def test_rejected_rows_that_were_mended_come_in(tradepost: Commands, tmp_path: Path, form: str) -> None:
    """The file of rejected rows is a file to import: with the reasons still in it, and in the same format."""
    file = file_of(form, tmp_path, user(1), user(2, email="nobody"), user(3, email="no one"))
    assert tradepost("import", "users", file).status == 1
    aside = Path(f"{file}.rejects.{form}")
    assert tradepost("import", "users", aside, "--rejects", tmp_path / "again").status == 1
    for wrong, right in (("nobody", "two@shop.example"), ("no one", "three@shop.example")):
        aside.write_text(aside.read_text("utf-8").replace(wrong, right), "utf-8")
    assert "2 read, 2 imported" in tradepost.done("import", "users", aside)
    assert len(tradepost.exported("users", tmp_path)) == 3


def test_a_broken_line_is_kept_so_that_it_can_be_mended(tradepost: Commands, tmp_path: Path) -> None:
    """A line that is no JSON is kept as a text; mended there, it comes in as the line it was meant to be."""
    file = tmp_path / "users.jsonl"
    broken = [
        b'{"name":"Ada","email":"ada@shop.example"',
        b"[1]",
        b"\xff\xfe{}",
        b'"text"',
        b"nul\0",
        b"[" * 9000,
    ]
    file.write_bytes(b"\n".join([json.dumps(user(1)).encode(), b"", *broken]) + b"\n\n")
    ended = tradepost("import", "users", file)
    assert ended.status == 1
    assert "7 read, 1 imported, 0 already there, 6 rejected" in ended.out
    aside = Path(f"{file}.rejects.jsonl")
    kept = [json.loads(line) for line in aside.read_text("utf-8").splitlines()]
    assert kept[0]["reason"].startswith("line 3: The line is not JSON")
    kept[0]["text"] += "}"
    assert "1 imported" in tradepost.done("import", "users", json_lines(tmp_path / "mended.jsonl", kept[:1]))


def test_a_row_that_is_no_row_of_its_table_is_kept_aside(tradepost: Commands, tmp_path: Path) -> None:
    """Rows with too few or too many cells or with broken text are rejected, each by itself."""
    file = tmp_path / "users.csv"
    rows = [
        b"name,email",
        b"Ada,ada@shop.example,x",
        b"Ada",
        b"\xff,b@shop.example",
        b"Bo,bo@shop.example",
        b"",
    ]
    file.write_bytes(b"\r\n".join(rows))
    ended = tradepost("import", "users", file)
    assert (ended.status, "4 read, 1 imported, 0 already there, 3 rejected" in ended.out) == (1, True)
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["line 2", "line 3", "line 4"]
    aside = Path(f"{file}.rejects.csv").read_bytes().splitlines()
    assert [line.split(b",line")[0] for line in aside[1:]] == [
        b"Ada,ada@shop.example,x",
        b"Ada,",
        b"\xff,b@shop.example",
    ]


def test_a_line_without_end_is_rejected_in_little_room(tradepost: Commands, tmp_path: Path) -> None:
    """A line of megabytes, or a quote that never closes, is one rejected row; the rows behind it come in."""
    long, good = b"x" * 5 * 2**20, json.dumps(user(1)).encode()
    lines = tmp_path / "users.jsonl"
    lines.write_bytes(b'{"name":"' + long + b'"}\n' + good)
    ended = tradepost("import", "users", lines)
    assert "2 read, 1 imported, 0 already there, 1 rejected" in ended.out
    assert Path(f"{lines}.rejects.jsonl").stat().st_size < 2000
    rows = tmp_path / "users.csv"
    rows.write_bytes(b'name,email\n"' + b"x,y\n" * (2**18 + 10) + b"Bo,bo@shop.example\n")
    ended = tradepost("import", "users", rows)
    assert "line 2: the line is not valid CSV: field larger than field limit" in ended.err
    assert ended.status == 1
    assert [each["email"] for each in tradepost.exported("users", tmp_path)][1:] == ["bo@shop.example"]


def test_an_import_that_loses_its_database_says_so(tradepost: Commands, tmp_path: Path) -> None:
    """Where the database cannot be used, the exit status is 3, and nothing is rejected for it."""
    tradepost.url = "postgresql://nobody@127.0.0.1:1/none"
    file = json_lines(tmp_path / "users.jsonl", [user(1)])
    assert tradepost("import", "users", file).status == 3
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"name,e-mail\nAda,ada@shop.example\n", "unknown columns: e-mail"),
        (b"name,email,name\n", "duplicate columns: name"),
        ("name,email\n".encode("utf-16"), "UTF-16"),
        (b"\x1f\x8b\x08\0cut", "truncated or damaged"),
    ],
)
def test_a_file_that_is_no_table_of_the_kind_cannot_be_read(
    tradepost: Commands, tmp_path: Path, content: bytes, why: str
) -> None:
    """A file whose header is not of the kind, or that is no text, ends the import with status 2 and why."""
    file = tmp_path / "users.csv"
    file.write_bytes(content)
    ended = tradepost("import", "users", file)
    assert ended.status == 2
    assert why in ended.err
    assert tradepost.exported("users", tmp_path) == []


@pytest.mark.parametrize("name", ["missing.csv", ".", "users.txt"])
def test_a_file_that_is_not_there_cannot_be_read(tradepost: Commands, tmp_path: Path, name: str) -> None:
    """What is missing, no file, or of an unknown format ends the import with status 2 and its name."""
    (tmp_path / "users.txt").touch()
    ended = tradepost("import", "users", tmp_path / name)
    assert ended.status == 2
    assert str(tmp_path / name) in ended.err


def test_a_packed_file_that_breaks_off_gives_what_it_has(tradepost: Commands, tmp_path: Path) -> None:
    """Where a gzipped file was cut off, the import ends with status 2; importing the whole one goes on."""
    whole = packed(
        json_lines(tmp_path / "users.jsonl", [user(n, name=str(hash(str(n)))) for n in range(9000)])
    )
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(whole.read_bytes()[:-40_000])
    ended = tradepost("import", "users", cut)
    assert ended.status == 2
    assert "truncated or damaged" in ended.err
    there = len(tradepost.exported("users", tmp_path))
    assert 5000 <= there < 9000
    out = tradepost.done("import", "users", whole)
    assert f"9,000 read, {9000 - there:,} imported, {there:,} already there" in out


def test_rejected_rows_never_go_over_the_file_they_come_from(tradepost: Commands, tmp_path: Path) -> None:
    """A file that is named as the place for its own rejected rows is refused, and stays as it is."""
    file = json_lines(tmp_path / "users.jsonl", [user(1, email="nobody")])
    before = file.read_bytes()
    assert tradepost("import", "users", file, "--rejects", file).status == 2
    assert file.read_bytes() == before
