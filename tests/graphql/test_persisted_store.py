"""Persisted queries: what one process was sent, every process knows, so many and no more."""

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from tests.given_clock import SECOND, GivenClock
from tests.graphql.operations import SCHEMA
from tests.service import Service
from tradepost.graphql import persisted
from tradepost.graphql.documents import DocumentCache, ValidDocument
from tradepost.graphql.errors import Refused
from tradepost.graphql.limits import Limits
from tradepost.graphql.persisted import PersistedQueries
from tradepost.graphql.request import GraphQLRequest
from tradepost.problems import Unavailable

TEXT = "{ users { totalCount } }"
MINUTE = 60 * SECOND


def asked(text: str | None = None, of: str | None = None) -> GraphQLRequest:
    """A request with a text, the hash of a text, or both."""
    given: dict[str, Any] = {"query": text}
    if of is not None:
        hash_ = hashlib.sha256(of.encode()).hexdigest()
        given["extensions"] = {"persistedQuery": {"version": 1, "sha256Hash": hash_}}
    return GraphQLRequest.of(given)


class Process:
    """What one process knows."""

    def __init__(self, service: Service, clock: GivenClock) -> None:
        self.service = service
        self.queries = PersistedQueries(
            service.app.rest.performer.database, clock, DocumentCache(SCHEMA, {}, Limits())
        )

    def ask(self, text: str | None = None, of: str | None = None) -> ValidDocument:
        return self.service.run(self._ask(text, of))

    def begin(self, text: str | None = None, of: str | None = None) -> "Future[ValidDocument]":
        return self.service.begin(self._ask(text, of))

    async def _ask(self, text: str | None, of: str | None) -> ValidDocument:
        found = self.queries.document(asked(text, of))
        return found if isinstance(found, ValidDocument) else await found

    def refusal(self, text: str | None = None, of: str | None = None) -> tuple[int, str, str]:
        with pytest.raises(Refused) as caught:
            self.ask(text, of)
        (error,) = caught.value.errors
        return caught.value.status, error["extensions"]["code"], error["message"]

    def kept(self) -> dict[str, str]:
        """When each document was last used, by its text, as all processes see it."""
        self.service.run(self.queries.finish())
        return {
            row[0]: row[1] for row in self.service.rows("SELECT document, used_at FROM persisted_queries")
        }


@pytest.fixture(scope="module")
def store(engine: str, new_service: Callable[..., Service]) -> Service:
    """A database of its own on each engine."""
    return new_service(engine)


@pytest.fixture
def clock() -> GivenClock:
    return GivenClock()


@pytest.fixture
def process(store: Service, clock: GivenClock) -> Process:
    """A process beside a table in which nothing is kept."""
    store.rows("DELETE FROM persisted_queries RETURNING hash")
    return Process(store, clock)


def test_a_hash_is_known_to_all_once_it_was_sent_with_its_text(process: Process, clock: GivenClock) -> None:
    """First unknown, as Apollo's clients want to be told; registered with its text; then known everywhere."""
    other = Process(process.service, clock)
    not_found = (200, "PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
    assert process.refusal(of=TEXT) == not_found
    assert process.ask(TEXT, of=TEXT).text == TEXT
    for each in (process, other, process, other):
        assert each.ask(of=TEXT).text == TEXT
    assert other.refusal(of=TEXT + " ") == not_found


def test_a_text_without_its_hash_is_not_registered(process: Process) -> None:
    """Only who asks for it has a document kept."""
    assert process.ask(TEXT).text == TEXT
    assert process.kept() == {}


def test_a_hash_of_another_text_is_refused(process: Process) -> None:
    """Nobody can put a document under the hash of another."""
    assert process.refusal("{ __typename }", of=TEXT) == (
        400,
        "PERSISTED_QUERY_HASH_MISMATCH",
        "provided sha does not match query",
    )
    assert process.kept() == {}


def test_what_is_not_valid_is_not_registered(process: Process) -> None:
    """A document is kept once it was parsed and validated, not before."""
    for text, code in (("{ users", "GRAPHQL_PARSE_FAILED"), ("{ nothing }", "GRAPHQL_VALIDATION_FAILED")):
        assert process.refusal(text, of=text)[1] == code
        assert process.refusal(of=text)[1] == "PERSISTED_QUERY_NOT_FOUND"
    assert process.kept() == {}


def test_those_used_last_are_kept(
    process: Process, clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table never holds more than its bound; what goes is what was used least recently."""
    monkeypatch.setattr(persisted, "KEPT", 3)
    texts = [f"{{ a{i}: __typename }}" for i in range(5)]
    for text in texts[:3]:
        clock.move(SECOND)
        process.ask(text, of=text)
    clock.move(61 * MINUTE)
    process.ask(of=texts[0])
    assert set(process.kept()) == set(texts[:3])
    for text in texts[3:]:
        clock.move(SECOND)
        process.ask(text, of=text)
    assert set(process.kept()) == {texts[0], *texts[3:]}


def test_use_is_noted_at_most_once_an_hour(process: Process, clock: GivenClock) -> None:
    """A document in constant use costs one write an hour, and none before its answer."""
    process.ask(TEXT, of=TEXT)
    first = process.kept()[TEXT]
    clock.move(59 * MINUTE)
    process.ask(of=TEXT)
    process.ask(TEXT, of=TEXT)
    assert process.kept()[TEXT] == first
    clock.move(2 * MINUTE)
    process.ask(of=TEXT)
    noted = process.kept()[TEXT]
    assert noted > first
    clock.move(59 * MINUTE)
    process.ask(of=TEXT)
    assert process.kept()[TEXT] == noted


def test_a_process_that_learns_a_document_heeds_when_it_was_used(process: Process, clock: GivenClock) -> None:
    """A use that another process noted within the hour is not noted again."""
    process.ask(TEXT, of=TEXT)
    first = process.kept()[TEXT]
    clock.move(30 * MINUTE)
    other = Process(process.service, clock)
    other.ask(of=TEXT)
    assert other.kept()[TEXT] == first
    clock.move(31 * MINUTE)
    third = Process(process.service, clock)
    third.ask(of=TEXT)
    assert third.kept()[TEXT] > first


def test_what_cannot_be_kept_is_answered_all_the_same(
    process: Process, clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database takes no writes, documents are answered; they are registered when it does again."""

    async def down(*_: object) -> None:
        message = "no database"
        raise Unavailable(message)

    with monkeypatch.context() as without:
        without.setattr(process.service.app.rest.performer.database, "write", down)
        assert process.ask(TEXT, of=TEXT).text == TEXT
    assert process.kept() == {}
    process.ask(TEXT, of=TEXT)
    assert set(process.kept()) == {TEXT}
    clock.move(61 * MINUTE)
    with monkeypatch.context() as without:
        without.setattr(process.service.app.rest.performer.database, "write", down)
        assert process.ask(of=TEXT).text == TEXT
        process.service.run(process.queries.finish())


def test_many_processes_may_register_at_once(process: Process, clock: GivenClock) -> None:
    """The same documents sent to several processes at the same moment are each kept once."""
    texts = [f"{{ b{i}: __typename }}" for i in range(8)]
    others = [Process(process.service, clock) for _ in range(4)]
    running = [other.begin(text, text) for text in texts for other in others]
    for each, text in zip(running, [text for text in texts for _ in others], strict=True):
        assert each.result(timeout=60).text == text
    assert set(process.kept()) == set(texts)


def test_a_document_that_was_forgotten_is_asked_for_again(process: Process, clock: GivenClock) -> None:
    """A process that did not remember it learns that the table has forgotten it, and takes it again."""
    process.ask(TEXT, of=TEXT)
    process.service.rows("DELETE FROM persisted_queries RETURNING hash")
    other = Process(process.service, clock)
    assert other.refusal(of=TEXT)[1] == "PERSISTED_QUERY_NOT_FOUND"
    assert other.ask(TEXT, of=TEXT).text == TEXT
    assert set(other.kept()) == {TEXT}
