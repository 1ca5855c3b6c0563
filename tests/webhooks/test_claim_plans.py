"""What a dead endpoint has piled up costs nobody: looks and claims touch a few rows of it, by index."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw
import asyncpg
import pytest

from tests.service import Service
from tradepost.storage.postgres import PostgresDatabase
from tradepost.storage.sqlite import SqliteDatabase, connect
from tradepost.storage.statement import Statement
from tradepost.storage.statements import webhook_deliveries

DUE, LATER = "2026-11-20T08:15:30", "2027-11-20T08:15:30"
QUEUES = ((0, DUE), (0, LATER), (1, DUE), (1, LATER))  # first attempts and later ones, due and not
PILED_UP = 6000  # deliveries of the dead endpoint in each
FEW = 100  # rows that a statement may touch, whatever is piled up
STEPS = 5000  # of SQLite's machine, for some hundred rows
INDEXES = {"webhook_deliveries_due_idx", "webhook_deliveries_leased_idx"}
PRIMARY = "webhook_deliveries_pkey"
OURS = re.compile(r"^(SCAN|SEARCH) (webhook_deliveries|d|q|o)\b(?:.* INDEX (\w+))?")  # and its aliases

_ADD = """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO webhook_deliveries (id, endpoint_id, event_type, status, attempts, next_attempt_at, created_at,
updated_at, version, attempt, later, lease, leased_until) SELECT '{endpoint}-{later}-{due}-{status}-' || i, '{endpoint}',
'none', '{status}', '[]', CASE '{status}' WHEN 'PENDING' THEN '{due}.' || CAST(1000000 + i AS text) END, '{due}', '{due}', 1, {later}, {later}, {lease}, {lease}
FROM n"""


class Asked(NamedTuple):
    """A statement with its parameters."""

    statement: Statement
    given: dict[str, Any]


LOOKS = {
    "a look": Asked(webhook_deliveries.LANES, {"after": ""}),
    "a look behind the dead one": Asked(webhook_deliveries.LANES, {"after": "dead"}),
    "candidates": Asked(
        webhook_deliveries.CANDIDATES, {"lanes": ["dead", "healthy"], "now": "2026-12-01T00:00:00"}
    ),
}
LEASES = {
    "leases": Asked(webhook_deliveries.LEASES, {"since": ""}),
    "a claim": Asked(
        webhook_deliveries.LEASE,
        {
            "ids": [f"dead-0-{DUE}-PENDING-1", "none"],
            "lease": "mine",
            "until": LATER,
            "now": "2026-12-01T00:00:00",
        },
    ),
    "a release": Asked(
        webhook_deliveries.RELEASE, {"ids": ["dead-0-out-PENDING-1", "none"], "leases": ["lease", "other"]}
    ),
}
ANALYSED, ANALYSED_BEFORE, NEVER = "analysed", "analysed before", "never analysed"


@pytest.fixture(scope="module")
def piled_up(request: pytest.FixtureRequest, engine: str, new_service: Callable[..., Service]) -> Service:
    """A database with tens of thousands of deliveries for one endpoint and a few for another, and its statistics."""
    service = new_service(engine)
    add(service, "dead", PILED_UP, status="DELIVERED")
    if request.param == ANALYSED_BEFORE:
        service.rows("ANALYZE")
    add(service, "healthy", 3)
    for later, due in QUEUES:
        add(service, "dead", PILED_UP, later=later, due=due)
    add(service, "dead", 2, due="out", lease="'lease'")
    if request.param == ANALYSED:
        service.rows("ANALYZE")
    return service


def add(service: Service, endpoint: str, count: int, **given: Any) -> None:
    values = {"later": 0, "due": DUE, "status": "PENDING", "lease": "NULL", **given}
    service.rows(_ADD.format(endpoint=endpoint, count=count, **values))


@pytest.mark.parametrize("piled_up", [ANALYSED, ANALYSED_BEFORE, NEVER], indirect=True)
@pytest.mark.parametrize("name", LOOKS)
def test_what_is_piled_up_is_not_walked(piled_up: Service, name: str) -> None:
    """A look and a claim touch a few rows by the indexes made for them, whatever statistics there are."""
    check(piled_up, LOOKS[name])


@pytest.mark.parametrize("piled_up", [ANALYSED, ANALYSED_BEFORE, NEVER], indirect=True)
@pytest.mark.parametrize("name", LEASES)
def test_leases_are_found_among_all_that_is_piled_up(piled_up: Service, name: str) -> None:
    """To find and to release leases touches what is leased and nothing else."""
    check(piled_up, LEASES[name])


def check(service: Service, asked: Asked) -> None:
    database = service.app.rest.performer.database
    if isinstance(database, SqliteDatabase):
        in_sqlite(database, asked)
    else:
        assert isinstance(database, PostgresDatabase)
        asyncio.run(in_postgres(service.database_url, database, asked))


def in_sqlite(database: SqliteDatabase, asked: Asked) -> None:
    sql, bind = database.compiled(asked.statement)
    values = bind(asked.given)
    connection = connect(database.path)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    touched = [found for found in map(OURS.match, plan) if found]
    assert touched, plan
    for found in touched:
        assert found[1] == "SEARCH" or found[3] in INDEXES, plan
        assert found[3] is None or found[3] in INDEXES, plan
    steps: list[int] = []
    connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE, lambda each: steps.append(each["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
    )
    connection.execute("BEGIN")
    connection.execute(sql, values).fetchall()
    connection.execute("ROLLBACK")
    connection.close()
    assert 0 < max(steps) < STEPS, plan


async def in_postgres(url: str, database: PostgresDatabase, asked: Asked) -> None:
    """The driver prepares each statement, so that after some uses its plan may be one for any parameters."""
    sql, bind = database.compiled(asked.statement)
    values = bind(asked.given)
    arguments = ", ".join(map(literal, values))
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"PREPARE asked AS {sql}")
        for mode in ("force_custom_plan", "force_generic_plan"):
            await connection.execute(f"SET plan_cache_mode = {mode}")
            await connection.execute("BEGIN")
            execute = f"EXECUTE asked ({arguments})" if values else "EXECUTE asked"
            found = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {execute}")
            await connection.execute("ROLLBACK")
            touched = [each for each in nodes(json.loads(found)[0]["Plan"]) if ours(each)]
            assert touched, found
            assert {each["Index Name"] for each in touched if "Index Name" in each} <= {*INDEXES, PRIMARY}, (
                found
            )
            assert "Seq Scan" not in {each["Node Type"] for each in touched}, found
            assert sum(map(rows, touched)) < FEW, found
    finally:
        await connection.close()


def literal(value: Any) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(literal, value))}]"
    assert isinstance(value, str)
    return f"'{value}'"


def nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


def ours(node: Any) -> bool:
    """Whether a node reads deliveries, or an index of theirs."""
    index = str(node.get("Index Name", ""))
    reads = node["Node Type"] != "ModifyTable" and node.get("Relation Name") == "webhook_deliveries"
    return reads or index.startswith("webhook_deliveries")


def rows(node: Any) -> float:
    """How many rows a node looked at."""
    seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return float(seen * node["Actual Loops"])
