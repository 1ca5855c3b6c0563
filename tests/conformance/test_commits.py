"""COMMIT on PostgreSQL is never cancelled: not when it takes long, and not with its caller."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.conformance.store import sql
from tests.conftest import migrate
from tests.engines.postgres import NoPostgresError, Server, ask, database, postgres_server
from tests.service import Reply, Service
from tests.shop import unique, user_body
from tradepost.problems import Unavailable
from tradepost.storage import postgres
from tradepost.storage.database import Database, Writing

# A user called "hold" waits at COMMIT for whoever has the lock; one called by an SQLSTATE raises that there.
AT_COMMIT = (
    """
    CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.name = 'hold' THEN PERFORM pg_advisory_xact_lock(7);
        ELSIF NEW.name ~ '^[0-9A-Z]{5}$' THEN RAISE EXCEPTION USING ERRCODE = NEW.name; END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION at_commit()
    """,
)
HELD = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND query = 'COMMIT' AND wait_event_type = 'Lock'"
)
HELD_USER = {"name": "hold"}
WAIT_SECONDS = 20.0


@pytest.fixture(scope="module")
def service(new_service: Callable[..., Service]) -> Service:
    """A service whose commits can be held."""
    return new_service("postgresql", migration=AT_COMMIT)


def database_of(service: Service) -> Database:
    return service.app.rest.performer.database


@asynccontextmanager
async def holding(service: Service) -> AsyncIterator[Any]:
    """Lets no user called "hold" be committed within the block; a connection to look on with."""
    connection = await asyncpg.connect(service.database_url)
    await connection.execute("SELECT pg_advisory_lock(7)")
    try:
        yield connection
    finally:
        await connection.close()


async def held(connection: Any) -> int:
    """The server process whose COMMIT is held, once there is one."""
    async with asyncio.timeout(WAIT_SECONDS):
        while (pid := await connection.fetchval(HELD)) is None:
            pass
    return int(pid)


async def until_released(service: Service) -> None:
    """Waits until no COMMIT is held any more."""
    connection = await asyncpg.connect(service.database_url)
    async with asyncio.timeout(WAIT_SECONDS):
        while await connection.fetchval(HELD) is not None:
            pass
    await connection.close()


def is_there(service: Service, email: str) -> bool:
    return bool(service.get(f"/v1/users?email={email}").json["items"])


def test_a_commit_that_takes_long_happens_all_the_same(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past its time the answer is 503, the change may yet be made, and the key of the request says whether it was."""
    monkeypatch.setattr(postgres, "_COMMIT_SECONDS", 0.1)
    body, key = user_body(**HELD_USER), unique()

    async def work() -> Reply:
        async with holding(service):
            return await service._call("POST", "/v1/users", body, "", {"idempotency_key": key})

    reply = service.run(work())
    assert reply.status == 503
    assert reply.headers["retry-after"]
    assert "may" in reply.json["detail"]
    service.run(until_released(service))
    assert is_there(service, body["email"])
    again = service.post("/v1/users", body, idempotency_key=key)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")


def test_a_change_in_doubt_is_seen_by_nobody(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as PostgreSQL has not committed, what was answered 503 is invisible."""
    monkeypatch.setattr(postgres, "_COMMIT_SECONDS", 0.1)
    body = user_body(**HELD_USER)

    async def work() -> Reply:
        async with holding(service) as connection:
            await service._call("POST", "/v1/users", body, "", {})
            await held(connection)
            return await service._call("GET", f"/v1/users?email={body['email']}", None, "", {})

    assert service.run(work()).json["items"] == []
    service.run(until_released(service))


def test_a_caller_that_gives_up_does_not_cancel_its_commit(service: Service) -> None:
    """Who stops waiting for a COMMIT changes nothing about it."""
    body = user_body(**HELD_USER)

    async def work() -> None:
        async with holding(service) as connection:
            call = asyncio.create_task(service._call("POST", "/v1/users", body, "", {}))
            await held(connection)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await held(connection)

    service.run(work())
    service.run(until_released(service))
    assert is_there(service, body["email"])


def test_a_stop_waits_for_commits(new_service: Callable[..., Service]) -> None:
    """A database that is stopped sees its commits through."""
    service = new_service("postgresql", migration=AT_COMMIT)
    body = user_body(**HELD_USER)

    async def work() -> Any:
        async with holding(service) as connection:
            call = asyncio.create_task(service._call("POST", "/v1/users", body, "", {}))
            await held(connection)
            stop = asyncio.create_task(database_of(service).stop())
            await held(connection)
            assert not stop.done()
        await stop
        return await call

    assert service.run(work()).status == 201
    service.run(database_of(service).start())


@pytest.mark.parametrize("state", ["08006", "25006", "40003", "53100", "57014", "57P01", "57P02", "58030"])
def test_a_commit_that_the_server_gives_up_is_503(service: Service, state: str) -> None:
    """An error of the server at COMMIT is never 500, and leaves a service that goes on."""
    reply = service.post("/v1/users", user_body(name=state))
    assert reply.status == 503
    assert reply.headers["retry-after"]
    assert service.post("/v1/users", user_body()).status == 201


def test_a_connection_that_breaks_during_commit_is_503(service: Service) -> None:
    """A server process that ends in the midst of COMMIT is never 500."""

    async def work() -> Reply:
        async with holding(service) as connection:
            call = asyncio.create_task(service._call("POST", "/v1/users", user_body(**HELD_USER), "", {}))
            await connection.execute("SELECT pg_terminate_backend($1)", await held(connection))
            return await call

    assert service.run(work()).status == 503


# --- a standby that is away ---


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    """A primary whose standby is away; its commits wait only if they ask for that."""
    try:
        with postgres_server(synchronous_standby_names="absent", synchronous_commit="local") as server:
            yield server
    except NoPostgresError as error:
        pytest.skip(f"a PostgreSQL of our own is needed: {error}")


def test_what_no_standby_has_is_invisible(primary: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that waits for its standby for too long is seen when the standby is back, and not before."""
    monkeypatch.setattr(postgres, "_COMMIT_SECONDS", 0.1)
    count = "SELECT count(*) FROM marks"
    with database(primary) as url:
        migrate(url)
        # With one connection the reads below begin when the commit's has been closed.
        service = Service(url, migration=["CREATE TABLE marks (id int)"], database_pool="1")

        async def work(tx: Writing) -> None:
            await tx.row(sql("SET LOCAL synchronous_commit TO on"))
            await tx.run(sql("INSERT INTO marks VALUES (1)"))

        with pytest.raises(Unavailable):
            service.run(database_of(service).write(work))
        assert service.rows(count) == [(0,)]
        ask(primary.url, "ALTER SYSTEM SET synchronous_standby_names = ''")
        ask(primary.url, "SELECT pg_reload_conf()")
        deadline = time.monotonic() + WAIT_SECONDS
        while service.rows(count) == [(0,)]:
            assert time.monotonic() < deadline
        assert service.rows(count) == [(1,)]
        service.stop()
