"""Limits over HTTP: what is beyond them is refused before anything runs, in either media type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graphql import get_introspection_query

from tests import shop
from tests.service import Reply, Service
from tradepost import settings
from tradepost.settings import BadSetting

RESPONSE = "application/graphql-response+json"


@pytest.fixture(scope="module")
def strict(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service with limits of its own."""
    return new_service(
        engine,
        graphql_max_depth="3",
        graphql_max_complexity="50",
        graphql_max_tokens="60",
        graphql_max_bytes="400",
        graphql_max_aliases="4",
    )


def ask(service: Service, query: str, variables: Any = None, **headers: str) -> Reply:
    return service.post("/graphql", {"query": query, "variables": variables}, **headers)


BEYOND = {
    "depth": ("{ users { nodes { orders { totalCount } } } }", "QUERY_TOO_DEEP"),
    "complexity": ("{ users(first: 30) { nodes { id } } }", "QUERY_TOO_COMPLEX"),
    "tokens": ("{ users { totalCount } } " + "# one token less\n" + "{ id } " * 20, "DOCUMENT_TOO_LARGE"),
    "bytes": ("{ users { totalCount } } #" + "." * 400, "DOCUMENT_TOO_LARGE"),
    "aliases": ("{ " + " ".join(f"a{i}: __typename" for i in range(5)) + " }", "DOCUMENT_TOO_LARGE"),
}


@pytest.mark.parametrize(("query", "code"), BEYOND.values(), ids=BEYOND)
def test_what_is_beyond_a_limit_is_refused(strict: Service, query: str, code: str) -> None:
    """200 as JSON, 400 as a GraphQL response; the error has its code, nothing of data, and cost nothing."""
    for accept, status in (("application/json", 200), (RESPONSE, 400)):
        reply = ask(strict, query, accept=accept)
        assert reply.status == status
        assert reply.headers["content-type"].startswith(accept)
        (error,) = reply.json["errors"]
        assert error["extensions"]["code"] == code
        assert error["extensions"]["category"] == "business"
        assert "data" not in reply.json
        assert reply.json["extensions"]["cost"]["statements"] == 0


def test_complexity_is_judged_with_the_variables(strict: Service) -> None:
    """A persisted page size is no way around: the same text passes or is refused by its variables."""
    query = "query($n: Int) { users(first: $n) { nodes { id } } }"
    assert ask(strict, query, {"n": 24}).json["extensions"]["cost"]["complexity"] == 49
    refused = ask(strict, query, {"n": 25}).json
    assert refused["errors"][0]["extensions"] == {
        "code": "QUERY_TOO_COMPLEX",
        "category": "business",
        "limit": 50,
        "found": 51,
    }


def test_a_mutation_beyond_a_limit_changes_nothing(strict: Service) -> None:
    """What is asked about the result is judged before the change is made."""
    user = shop.a_user(strict, name="Ada")
    query = """mutation($id: ID!) {
      updateUser(id: $id, input: {name: "Joan"}) { orders(first: 100) { totalCount } }
    }"""
    reply = ask(strict, query, {"id": user["id"]})
    assert reply.json["errors"][0]["extensions"]["code"] == "QUERY_TOO_COMPLEX"
    assert strict.get(f"/v1/users/{user['id']}").json["name"] == "Ada"


def test_what_an_operation_measures_is_told(service: Service) -> None:
    """`extensions.cost` has the depth and the complexity that the limits look at."""
    cost = ask(service, "{ users(first: 2) { nodes { orders(first: 3) { nodes { id } } } } }")
    measured = cost.json["extensions"]["cost"]
    assert (measured["depth"], measured["complexity"]) == (5, 1 + 2 * (2 + 3 * 2))


def test_tools_can_introspect_within_strict_depth(engine: str, new_service: Callable[..., Service]) -> None:
    """Depth does not count what is below `__schema`, so the lowest limit leaves introspection possible."""
    lowest = new_service(engine, graphql_max_depth="1")
    assert ask(lowest, get_introspection_query()).json["data"]["__schema"]["types"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MAX_DEPTH", "0"),
        ("MAX_COMPLEXITY", "many"),
        ("MAX_TOKENS", "-1"),
        ("MAX_BYTES", "64k"),
        ("MAX_ALIASES", ""),
        ("TIMEOUT", "0"),
        ("TIMEOUT", "1e3"),
        ("TIMEOUT", "nan"),
        ("COMPILED", "1"),
        ("ALLOWLIST", "/no/such/folder"),
        ("MAX_DEPHT", "10"),
    ],
)
def test_a_limit_that_cannot_be_used_stops_the_start(name: str, text: str) -> None:
    """One line names the setting; one that is misspelled, or is no more, is not overlooked."""
    with pytest.raises(BadSetting, match=f"TRADEPOST_GRAPHQL_{name}"):
        settings.load({f"TRADEPOST_GRAPHQL_{name}": text})


def test_limits_are_settings(tmp_path: Path) -> None:
    """Each is read from the environment, a time-out in parts of seconds too."""
    found = settings.load(
        {
            "TRADEPOST_GRAPHQL_MAX_DEPTH": "7",
            "TRADEPOST_GRAPHQL_TIMEOUT": "2.5",
            "TRADEPOST_GRAPHQL_ALLOWLIST": str(tmp_path),
        }
    )
    assert (found.graphql_max_depth, found.graphql_timeout) == (7, 2.5)
    assert found.graphql_allowlist == tmp_path
    usual = settings.load({})
    assert (usual.graphql_max_depth, usual.graphql_max_complexity, usual.graphql_timeout) == (10, 20_000, 10)
    assert (usual.graphql_max_tokens, usual.graphql_max_bytes) == (2000, 65_536)
    assert usual.graphql_allowlist is None
