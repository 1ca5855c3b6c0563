"""The allowlist: what is in its files is answered, however it is spaced, and nothing else is."""

import hashlib
from pathlib import Path

import pytest
from graphql import parse, print_ast, separate_operations, strip_ignored_characters

from tests.given_clock import GivenClock
from tests.graphql.operations import SCHEMA
from tests.graphql.test_persisted_store import asked
from tradepost.graphql.documents import DocumentCache, ValidDocument
from tradepost.graphql.errors import Refused
from tradepost.graphql.limits import Limits
from tradepost.graphql.persisted import PersistedQueries
from tradepost.settings import BadSetting
from tradepost.storage.sqlite import SqliteDatabase

SHOP = """# what the shop asks
query Users($first: Int) {
  users(first: $first) { nodes { ...Person } }
}

query One { user(id: "1") { ...Person, etag } }

fragment Person on User { id, name }
"""
OTHER = "query Other { __typename }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files, one in a folder below, and one that is no document."""
    (tmp_path / "more").mkdir()
    (tmp_path / "shop.graphql").write_text(SHOP)
    (tmp_path / "more/other.graphql").write_text(OTHER)
    (tmp_path / "README.md").write_text("{ not a document")
    return tmp_path


def queries(path: Path, limits: Limits | None = None) -> PersistedQueries:
    """Those of a service whose database cannot be reached: an allowlist needs none."""
    database = SqliteDatabase(str(path / "no such folder/x.db"))
    return PersistedQueries(database, GivenClock(), DocumentCache(SCHEMA, {}, limits or Limits()), path)


def answered(found: PersistedQueries, text: str | None = None, of: str | None = None) -> ValidDocument:
    document = found.document(asked(text, of))
    assert isinstance(document, ValidDocument)  # at once: nothing has to be read
    return document


def parts() -> list[str]:
    """Each operation of the shop with the fragments it needs."""
    return [print_ast(each) for each in separate_operations(parse(SHOP)).values()]


@pytest.mark.parametrize(
    "text", [SHOP, SHOP.strip(), OTHER, *parts()], ids=["whole", "stripped", "other", "users", "one"]
)
def test_what_is_listed_is_answered_however_it_is_asked_for(folder: Path, text: str) -> None:
    """A file as a whole, or one of its operations: by text, by hash, both, and spaced in any way."""
    found = queries(folder)
    assert answered(found, text).text == text
    assert answered(found, text, of=text).text == text
    name = next(answered(found, text).operations()).name
    assert answered(found, of=text).operation(name).name == name
    for spelled in (strip_ignored_characters(text), text.replace("\n", "\n # x\n ,"), f"\ufeff{text}"):
        assert answered(found, spelled).text == spelled
        assert answered(found, spelled, of=spelled).text == spelled


@pytest.mark.parametrize(
    "text",
    [
        "{ __typename }",
        "query Other { __typename, __typename }",
        "query Another { __typename }",
        "fragment Person on User { id, name }",
        "{ not a document",
        SHOP + OTHER,
        "",
    ],
)
def test_what_is_not_listed_is_not_answered(folder: Path, text: str) -> None:
    """Anything else is refused alike, valid or not, by text or by hash, and is never registered."""
    found = queries(folder)
    for given in ((text, None), (None, text), (text, text), (None, text)):
        with pytest.raises(Refused) as caught:
            answered(found, *given)
        assert caught.value.status == 403
        assert caught.value.errors[0]["extensions"]["code"] == "PERSISTED_QUERY_NOT_ALLOWED"


def test_a_hash_of_another_text_is_refused_there_too(folder: Path) -> None:
    """A listed hash does not let another text in."""
    with pytest.raises(Refused) as caught:
        answered(queries(folder), "{ __typename }", of=OTHER)
    assert caught.value.errors[0]["extensions"]["code"] == "PERSISTED_QUERY_HASH_MISMATCH"


def test_a_single_file_is_a_list(folder: Path) -> None:
    """The setting may name one file."""
    found = queries(folder / "shop.graphql")
    assert answered(found, SHOP)
    with pytest.raises(Refused):
        answered(found, OTHER)


def test_a_file_may_hold_more_than_a_request(tmp_path: Path) -> None:
    """Limits hold for each operation of a file by itself; the file as a whole is then not answered."""
    bundle = " ".join(f"query Q{i} {{ users {{ totalCount }} }}" for i in range(300))
    (tmp_path / "bundle.graphql").write_text(bundle)
    found = queries(tmp_path)
    assert len(list(found.listed())) == 300
    assert answered(found, "query Q299 { users { totalCount } }")
    with pytest.raises(Refused):
        answered(found, bundle)


def test_those_that_are_listed_can_be_prepared(folder: Path) -> None:
    """The listed documents are at hand before the first request, the same as those that answer it."""
    found = queries(folder)
    listed = {each.hash: each for each in found.listed()}
    assert listed[hashlib.sha256(SHOP.encode()).hexdigest()] is answered(found, SHOP)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{ users", "Expected Name, found <EOF>"),
        (b"query Q {\n  nothing }", "Cannot query field 'nothing' on type 'Query'. (line 2)"),
        (
            b"{ users { nodes { orders { nodes { user { orders { nodes { user { orders { nodes { id } } } } } } } } } } }",
            "11 levels",
        ),
        (b"fragment F on User { id }", "never used"),
        (b"query Q { __typename } query Q { __typename }", "only one operation named"),
        (b"", "Unexpected <EOF>"),
        (b"\xff", "utf-8"),
    ],
)
def test_a_bad_document_stops_the_start(tmp_path: Path, text: bytes, said: str) -> None:
    """One line names the setting, the file and what is wrong with it."""
    (tmp_path / "bad.graphql").write_bytes(text)
    with pytest.raises(BadSetting) as caught:
        queries(tmp_path)
    line = str(caught.value)
    assert line.startswith(f"TRADEPOST_GRAPHQL_ALLOWLIST: {tmp_path}/bad.graphql: ")
    assert said in line
    assert "\n" not in line


def test_an_empty_folder_stops_the_start(tmp_path: Path) -> None:
    """A list of nothing is a mistake."""
    with pytest.raises(BadSetting, match=r"holds no \.graphql files"):
        queries(tmp_path)
