"""What tests stand on: both engines, and the service on each."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.engines.postgres import Server, database, postgres_server
from tests.service import Service
from tradepost import assembly
from tradepost.settings import load

# A test on a slow machine is slow, not wrong.
settings.register_profile("tradepost", deadline=None, max_examples=40, print_blob=True)
settings.load_profile("tradepost")


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
def new_database(
    postgres: Server, postgres_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Makes an empty database with the schema on the engine named."""
    made: list[Any] = []
    numbers = itertools.count()

    def new(engine: str) -> str:
        if engine == "postgresql":
            opened = database(postgres, template=postgres_template)
            url: str = opened.__enter__()
            made.append(opened)
            return url
        path: Path = tmp_path_factory.mktemp("sqlite") / f"{next(numbers)}.db"
        migrate(f"sqlite:///{path}")
        return f"sqlite:///{path}"

    yield new
    for opened in made:
        opened.__exit__(None, None, None)


@pytest.fixture(scope="session")
def new_service(new_database: Callable[[str], str]) -> Iterator[Callable[..., Service]]:
    """Starts a service of its own on a new database of the engine named; options as `assemble` takes them."""
    running: list[Service] = []

    def new(engine: str = "sqlite", **options: Any) -> Service:
        running.append(Service(new_database(engine), **options))
        return running[-1]

    yield new
    for service in running:
        service.stop()


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def service(engine: str, new_service: Callable[..., Service]) -> Service:
    """The service on each engine, shared by all tests: a test makes what it needs and counts on no more."""
    return new_service(engine)
