"""Persisted queries over HTTP: what Apollo's clients do, against every process on a database."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests import shop
from tests.service import Reply, Service

RESPONSE = "application/graphql-response+json"
JSON = "application/json"
TYPES = pytest.mark.parametrize("accept", [JSON, RESPONSE])
ONE = "query One($id: ID!) { user(id: $id) { name } }"
RENAME = "mutation Rename($id: ID!, $name: String!) { updateUser(id: $id, input: {name: $name}) { name } }"


def fresh(text: str) -> str:
    """The same document, under a hash that nobody has sent."""
    return f"# {shop.unique()}\n{text}"


def persisted(text: str) -> dict[str, Any]:
    return {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(text.encode()).hexdigest()}}


def ask(service: Service, body: dict[str, Any], accept: str = JSON) -> Reply:
    return service.post("/graphql", body, accept=accept)


def get(service: Service, accept: str = JSON, **parameters: Any) -> Reply:
    spelled = {
        name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()
    }
    return service.get(f"/graphql?{urlencode(spelled)}", accept=accept)


def codes(reply: Reply) -> list[str]:
    return [error["extensions"]["code"] for error in reply.json["errors"]]


@pytest.fixture(scope="module")
def other(service: Service) -> Iterator[Service]:
    """Another process on the same database."""
    second = Service(service.database_url)
    yield second
    second.stop()


@TYPES
def test_a_client_sends_a_hash_then_both_then_the_hash(service: Service, other: Service, accept: str) -> None:
    """Unknown with 200 and the message that clients wait for; taken with its text; known to every process."""
    text, user = fresh(ONE), shop.a_user(service, name="Grace")
    hashed = {"extensions": persisted(text), "variables": {"id": user["id"]}, "operationName": "One"}
    for process in (service, other):
        unknown = ask(process, hashed, accept)
        assert unknown.status == 200
        assert unknown.headers["content-type"].startswith(accept)
        assert "no-store" in unknown.headers["cache-control"]
        (error,) = unknown.json["errors"]
        assert error["message"] == "PersistedQueryNotFound"
        assert error["extensions"]["code"] == "PERSISTED_QUERY_NOT_FOUND"
        assert "data" not in unknown.json
    taken = ask(service, {**hashed, "query": text}, accept)
    found = {"user": {"name": "Grace"}}
    assert (taken.status, taken.json["data"]) == (200, found)
    for process in (other, service):
        assert ask(process, hashed, accept).json["data"] == found
        again = get(process, accept, extensions=persisted(text), variables={"id": user["id"]})
        assert (again.status, again.json["data"]) == (200, found)


def test_a_client_may_register_by_get(service: Service) -> None:
    """The hash and the text in a query string are as good as in a body."""
    text, user = fresh(ONE), shop.a_user(service)
    variables = {"id": user["id"]}
    assert get(service, query=text, extensions=persisted(text), variables=variables).json["data"]
    assert get(service, extensions=persisted(text), variables=variables).json["data"]


def test_a_persisted_mutation_changes_by_post_alone(service: Service) -> None:
    """What changes something is refused by GET, persisted or not, and changes nothing."""
    text, user = fresh(RENAME), shop.a_user(service, name="Ada")
    variables = {"id": user["id"], "name": "Joan"}
    assert ask(service, {"query": text, "extensions": persisted(text), "variables": variables}).json["data"]
    variables["name"] = "Mary"
    for parameters in ({"extensions": persisted(text)}, {"query": text}):
        refused = get(service, variables=variables, **parameters)
        assert (refused.status, refused.headers["allow"]) == (405, "POST")
    assert service.get(f"/v1/users/{user['id']}").json["name"] == "Joan"
    assert ask(service, {"extensions": persisted(text), "variables": variables}).json["data"]
    assert service.get(f"/v1/users/{user['id']}").json["name"] == "Mary"


@TYPES
def test_a_hash_that_does_not_match_registers_nothing(service: Service, accept: str) -> None:
    """A text under the hash of another is a request error, and the other stays unknown."""
    text = fresh(ONE)
    reply = ask(service, {"query": "{ __typename }", "extensions": persisted(text)}, accept)
    assert reply.status == (200 if accept == JSON else 400)
    assert codes(reply) == ["PERSISTED_QUERY_HASH_MISMATCH"]
    assert codes(ask(service, {"extensions": persisted(text)}, accept)) == ["PERSISTED_QUERY_NOT_FOUND"]


@TYPES
@pytest.mark.parametrize(
    "extensions",
    [
        {"persistedQuery": {"version": 2, "sha256Hash": "0" * 64}},
        {"persistedQuery": {"version": 1, "sha256Hash": "x"}},
        {"persistedQuery": "0"},
    ],
)
def test_a_persisted_query_of_another_kind_is_a_bad_request(
    service: Service, accept: str, extensions: dict[str, Any]
) -> None:
    """What cannot be read as one is 400 in either media type, and says what it has to be."""
    reply = ask(service, {"query": "{ __typename }", "extensions": extensions}, accept)
    assert reply.status == 400
    (error,) = reply.json["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert "sha256Hash" in error["message"]
    assert error["extensions"]["errors"][0]["field"] == "extensions.persistedQuery"


def test_only_the_listed_are_answered_with_an_allowlist(
    engine: str, new_service: Callable[..., Service], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a list, what is on it is answered by text and by hash; anything else is 403 and is not registered."""
    folder = tmp_path_factory.mktemp("allowed")
    (folder / "one.graphql").write_text(ONE)
    service = new_service(engine, graphql_allowlist=str(folder))
    user = shop.a_user(service, name="Grace")
    variables = {"id": user["id"]}
    for body in ({"query": ONE}, {"query": f"{ONE}\n"}, {"extensions": persisted(ONE)}):
        assert ask(service, {**body, "variables": variables}).json["data"] == {"user": {"name": "Grace"}}
    assert get(service, extensions=persisted(ONE), variables=variables).status == 200
    text = fresh("{ users { totalCount } }")
    unlisted: list[dict[str, Any]] = [
        {"query": text},
        {"query": text, "extensions": persisted(text)},
        {"extensions": persisted(text)},
        {"query": "{ __schema { description } }"},
    ]
    for body in unlisted:
        for accept in (JSON, RESPONSE):
            reply = ask(service, body, accept)
            assert (reply.status, codes(reply)) == (403, ["PERSISTED_QUERY_NOT_ALLOWED"])
    assert service.rows("SELECT hash FROM persisted_queries") == []
