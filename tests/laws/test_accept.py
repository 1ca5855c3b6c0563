"""One reading of the Accept field, whatever answers."""

from collections.abc import Callable

import pytest

from tests.service import Service


@pytest.fixture(scope="module")
def service(new_service: Callable[..., Service]) -> Service:
    return new_service("sqlite")


@pytest.mark.parametrize(
    ("quality", "json"),
    [
        ("q=1", True),
        ("Q=0.5", True),
        ("charset=utf-8 ; q=.2", True),
        ("q = 0.001", True),
        ("q=0", False),
        ("Q=0.000", False),
        ("q = 0", False),
        ("q=none", False),
        ("q=", False),
    ],
)
def test_a_quality_value_is_read_alike_everywhere(service: Service, quality: str, json: bool) -> None:
    """REST, GraphQL and the documents agree whether a client takes JSON."""
    accept = f"application/json;{quality}"
    rest = service.get("/v1/users", accept=accept)
    graphql = service.post("/graphql", {"query": "{ __typename }"}, accept=accept)
    document = service.get("/problems", accept=f"{accept}, text/html;q=0")
    assert {rest.status, graphql.status} == {200 if json else 406}
    assert document.headers["content-type"].startswith("application/json" if json else "text/html")
