"""The real process, judged by the public audit of GraphQL over HTTP; its schema, read as code generators read it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from graphql import (
    build_client_schema,
    build_schema,
    get_introspection_query,
    print_schema,
    validate_schema,
)

from tests.flows import node
from tests.flows.process import Process, serving
from tradepost.graphql.schema import schema_text

AUDITS = 61  # that graphql-http had when it was pinned; none was declined

_EVERYTHING = get_introspection_query(
    specified_by_url=True,
    directive_is_repeatable=True,
    schema_description=True,
    input_value_deprecation=True,
    one_of=True,
)


@pytest.fixture(scope="module")
def process(new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database("sqlite")) as running:
        yield running


def address(process: Process) -> str:
    return f"http://127.0.0.1:{process.port}/graphql"


def test_every_audit_of_graphql_over_http_is_passed(process: Process) -> None:
    """What the audit finds a server must, should and may do, this one does."""
    results = node.output("audit.mjs", address(process), process.key)
    assert len(results) == AUDITS
    assert [each for each in results if each["status"] != "ok"] == []


def test_graphql_js_reads_the_schema(process: Process, tmp_path: Path) -> None:
    """For graphql-js the file is a valid schema, and introspection over the wire yields the same one."""
    file = tmp_path / "schema.graphql"
    file.write_text(schema_text(), "utf-8")
    found = node.output("schema.mjs", address(process), process.key, str(file))
    assert found["invalid"] == []
    assert found["wire"] == found["file"]


def test_graphql_core_reads_the_schema(process: Process) -> None:
    """For graphql-core the file is a valid schema, and introspection over the wire yields the same one."""
    file = build_schema(schema_text())
    assert validate_schema(file) == []
    status, answer = process.call("POST", "/graphql", {"query": _EVERYTHING})
    assert status == 200
    assert print_schema(build_client_schema(answer["data"])) == print_schema(file)
