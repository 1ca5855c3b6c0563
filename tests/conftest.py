"""What tests stand on: both engines, and the service on each."""

import asyncio
import gc
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.engines.postgres import Server, database, postgres_server
from tests.engines.process import private_directory
from tests.given_clock import GivenTime
from tests.service import Service
from tradepost import assembly
from tradepost.settings import load

# A test on a slow machine is slow, not wrong.
settings.register_profile("tradepost", deadline=None, max_examples=40, print_blob=True)
settings.load_profile("tradepost")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is there to the end: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def migrate(url: str) -> None:
    asyncio.run(assembly.migrate(load({}, database_url=url)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: Server) -> Iterator[str]:
    """An empty database with the schema, to make others from."""
    with database(postgres) as url:
        migrate(url)
        yield url


@pytest.fixture
def postgres_empty(postgres: Server) -> Iterator[str]:
    """A database without anything in it."""
    with database(postgres) as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template() -> Iterator[Path]:
    """A file with the schema, to copy; copies lie beside it, in memory where there is room."""
    with private_directory(None) as directory:
        template = directory / "template.db"
        migrate(f"sqlite:///{template}")
        yield template


Databases = Callable[[], AbstractContextManager[Callable[[str], str]]]


@pytest.fixture(scope="session")
def databases(postgres: Server, postgres_template: str, sqlite_template: Path) -> Databases:
    """Blocks for whose length empty databases with the schema can be made, on the engine named."""

    @contextmanager
    def block() -> Iterator[Callable[[str], str]]:
        with ExitStack() as made:

            def new(engine: str) -> str:
                if engine == "postgresql":
                    return made.enter_context(database(postgres, template=postgres_template))
                directory = made.enter_context(tempfile.TemporaryDirectory(dir=sqlite_template.parent))
                return f"sqlite:///{shutil.copy(sqlite_template, directory)}"

            yield new

    return block


@pytest.fixture(scope="module")
def new_database(databases: Databases) -> Iterator[Callable[[str], str]]:
    """Makes an empty database with the schema on the engine named."""
    with databases() as new:
        yield new


@contextmanager
def services(new_database: Callable[[str], str]) -> Iterator[Callable[..., Service]]:
    """Starts services on databases of their own, for the length of the block."""
    with ExitStack() as running:

        def new(engine: str = "sqlite", **options: Any) -> Service:
            service = Service(new_database(engine), **options)
            running.callback(service.stop)
            return service

        yield new


@pytest.fixture(scope="module")
def new_service(new_database: Callable[[str], str]) -> Iterator[Callable[..., Service]]:
    """Starts a service of its own on a new database of the engine named; options as `assemble` takes them."""
    with services(new_database) as new:
        yield new


@pytest.fixture(scope="session")
def shared_service(databases: Databases) -> Iterator[Callable[[str], Service]]:
    """The one service on the engine named that is shared by all tests."""
    with databases() as new_database, services(new_database) as new:
        yield cache(new)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def service(engine: str, shared_service: Callable[[str], Service]) -> Service:
    """The service on each engine, shared by all tests: a test makes what it needs and counts on no more."""
    return shared_service(engine)


@pytest.fixture
def door_time(monkeypatch: pytest.MonkeyPatch) -> GivenTime:
    """The time by which keys are remembered, which for the length of a test is what the test makes it."""
    given = GivenTime()
    monkeypatch.setattr("tradepost.access.api_keys.time", given)
    return given
