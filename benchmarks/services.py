"""The services that are compared: how each is filled, given a key and served.

Those of one question answer the same requests.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.client import Client
from benchmarks.contestants import Served
from benchmarks.node import installed
from benchmarks.request import Request
from benchmarks.servers import ROOT, Probe, Server, environment, free_port, serving
from benchmarks.shop import Shop, look_around

_FIRST = Request("GET", "/v1/products?limit=1")
_ALIVE = Request("GET", "/livez")
_FIRST_GRAPHQL = Request("POST", "/graphql", b'{"query": "{ __typename }"}')
_PEER_DATABASE = "PEER_DATABASE_URL"


@dataclass(frozen=True)
class Size:
    users: int
    products: int
    orders: int

    def options(self) -> list[str]:
        rows = {"--users": self.users, "--products": self.products, "--orders": self.orders}
        return [word for name, count in rows.items() for word in (name, str(count))]


@dataclass(frozen=True)
class Service:
    """A command with tradepost's subcommands: `demo` fills, `keys create` prints a key, `serve` serves.

    tradepost alone has `worker`, too.

    `first`: what it has to answer before it counts as started.
    """

    name: str
    command: tuple[str, ...]
    database_setting: str
    settings: Mapping[str, str]
    first: Request = _FIRST

    def fill(self, database: str, size: Size) -> None:
        self.run(database, "migrate")
        self.run(database, "demo", *size.options())

    def new_key(self, database: str) -> str:
        return self.run(database, "keys", "create", "--scopes", "admin").strip()

    @contextmanager
    def serve(self, database: str, key: str, log: Path) -> Iterator[Server]:
        port = free_port()
        command = [*self.command, "serve", "--port", str(port)]
        with serving(command, self._settings(database), Probe(port, self.first, key), log) as server:
            yield server

    @contextmanager
    def work(self, database: str, log: Path, core: int | None) -> Iterator[Server]:
        """A process that delivers and serves nothing but its figures, on this core or on any."""
        port = free_port()
        command = [*self.command, "worker", "--metrics-port", str(port)]
        with serving(command, self._settings(database), Probe(port, _ALIVE, ""), log, core) as worker:
            yield worker

    def run(self, database: str, *arguments: str) -> str:
        """What a subcommand prints; RuntimeError with its last words if it fails."""
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=ROOT,
            env=environment(self._settings(database)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"{self.name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}"[-2_000:]
            )
        return done.stdout

    def _settings(self, database: str) -> dict[str, str]:
        return {**self.settings, self.database_setting: database}


TRADEPOST = Service(
    "tradepost",
    (str(Path(sys.executable).with_name("tradepost")),),
    "TRADEPOST_DATABASE_URL",
    {"TRADEPOST_RATE_LIMIT": "1000000/second", "TRADEPOST_LOG": "json"},
)
PEER = Service(
    "FastAPI + SQLAlchemy",
    (sys.executable, "-m", "benchmarks.peers.fastapi_sqlalchemy"),
    _PEER_DATABASE,
    {},
)
STRAWBERRY = Service(
    "Strawberry + SQLAlchemy",
    (sys.executable, "-m", "benchmarks.peers.strawberry_sqlalchemy"),
    _PEER_DATABASE,
    {},
    _FIRST_GRAPHQL,
)
MERCURIUS = "mercurius with JIT"


def mercurius() -> Service:
    """UnavailableError if it cannot run here."""
    command = ("node", str(installed(ROOT / "benchmarks" / "peers" / "mercurius") / "main.js"))
    return Service(MERCURIUS, command, _PEER_DATABASE, {"NODE_ENV": "production"}, _FIRST_GRAPHQL)


@dataclass(frozen=True)
class OpenService:
    """One that is filled, stocked and running, with what there is to ask it for."""

    name: str
    server: Server
    key: str
    shop: Shop

    def asked(self, requests: Iterable[Request]) -> Served:
        return Served.of(self.name, self.server, self.key, requests)

    def client(self) -> Client:
        return Client(self.server.port, self.key)


@contextmanager
def opened(service: Service, database: str, size: Size, folder: Path) -> Iterator[OpenService]:
    service.fill(database, size)
    key = service.new_key(database)
    with service.serve(database, key, folder / f"{service.name}.log") as server:
        with Client(server.port, key) as client:
            shop = look_around(client)
            _stock_up(client, shop.products)
        yield OpenService(service.name, server, key, shop)


def _stock_up(client: Client, products: Iterable[str]) -> None:
    """More of each than can be ordered while measuring; tracked, so that placing has to take it."""
    for product in products:
        client.patch(f"/v1/products/{product}", {"stock": 1_000_000_000})
