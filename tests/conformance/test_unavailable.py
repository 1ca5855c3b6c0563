"""What PostgreSQL cannot do at the moment is 503 with `Retry-After`, whatever it says about it."""

import time
from collections.abc import Callable

import pytest

from tests.conformance.store import Store, sql
from tests.engines.postgres import Server, ask
from tests.service import Service
from tests.shop import user_body
from tradepost.problems import Unavailable
from tradepost.storage.database import Writing

# A user called by an SQLSTATE raises it.
RAISE = (
    """
    CREATE FUNCTION raise(state text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION USING ERRCODE = state;
    END $$
    """,
    """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.name ~ '^[0-9A-Z]{5}$' THEN PERFORM raise(NEW.name); END IF;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER refuse BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse()",
)
SELECT = sql("SELECT * FROM marks")
STATES = [
    *("08000", "08003", "08006", "25006", "25P03", "26000", "40003", "53100", "53200", "53300", "53400"),
    *("55P03", "57014", "57P01", "57P02", "57P03", "57P05", "58030"),
]


@pytest.fixture(scope="module")
def store(new_service: Callable[..., Service]) -> Store:
    return Store(new_service("postgresql", migration=RAISE))


@pytest.mark.parametrize("state", STATES)
def test_a_write_is_503(store: Store, state: str) -> None:
    """The answer says when to come again; the next request is served."""
    reply = store.service.post("/v1/users", user_body(name=state))
    assert reply.status == 503
    assert reply.headers["retry-after"]
    assert store.service.post("/v1/users", user_body()).status == 201


@pytest.mark.parametrize("state", STATES)
def test_a_read_is_unavailable(store: Store, state: str) -> None:
    """Reads meet the same errors, and the next is served."""
    with pytest.raises(Unavailable):
        store.rows(f"SELECT raise('{state}')")
    assert store.rows("SELECT 1") == [(1,)]


def test_a_failure_of_ours_stays_one(store: Store) -> None:
    """An error that no later attempt is spared is 500."""
    assert store.service.post("/v1/users", user_body(name="42703")).status == 500


def test_a_refused_connection_is_503(store: Store, postgres: Server) -> None:
    """While PostgreSQL takes no connections, reads and writes are 503; afterwards they are served."""
    name = store.service.database_url.rpartition("/")[2]
    ask(postgres.url, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    backends = f"FROM pg_stat_activity WHERE datname = '{name}'"
    ask(postgres.url, f"SELECT count(pg_terminate_backend(pid)) {backends}")
    deadline = time.monotonic() + 20
    while ask(postgres.url, f"SELECT count(*) {backends}"):
        assert time.monotonic() < deadline
    for _ in range(8):
        for reply in (store.service.get("/v1/users"), store.service.post("/v1/users", user_body())):
            assert reply.status == 503
            assert reply.headers["retry-after"]
    ask(postgres.url, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert store.service.get("/v1/users").status == 200
    assert store.service.post("/v1/users", user_body()).status == 201


def test_a_statement_that_a_migration_made_invalid_is_unavailable_once(
    new_service: Callable[..., Service],
) -> None:
    """A transaction whose prepared statement no longer fits is 503; the next has it prepared again."""
    store = Store(new_service("postgresql", database_pool="1", migration=["CREATE TABLE marks (id int)"]))

    async def work(tx: Writing) -> int:
        return len(await tx.rows(SELECT))

    assert store.write(work) == 0
    ask(store.service.database_url, "ALTER TABLE marks ADD COLUMN name text")
    with pytest.raises(Unavailable):
        store.write(work)
    assert store.write(work) == 0
