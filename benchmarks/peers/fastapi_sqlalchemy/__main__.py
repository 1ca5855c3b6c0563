"""The peer's command: `migrate`, `demo`, `keys create` and `serve`, as tradepost has them."""

import argparse
import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncSession

from benchmarks.peers.fastapi_sqlalchemy.access import hash_of
from benchmarks.peers.fastapi_sqlalchemy.database import Sessions, open_engine
from benchmarks.peers.fastapi_sqlalchemy.demo import fill
from benchmarks.peers.fastapi_sqlalchemy.routes import router
from benchmarks.peers.fastapi_sqlalchemy.tables import ApiKey, Base


def main() -> None:
    options = _options()
    url = os.environ["PEER_DATABASE_URL"]
    if options.command == "serve":
        _serve(url, options.port)
    elif options.command == "migrate":
        asyncio.run(_migrate(url))
    elif options.command == "demo":
        asyncio.run(_demo(url, options.users, options.products, options.orders))
    else:
        print(asyncio.run(_new_key(url, options.scopes)))


def _serve(url: str, port: int) -> None:
    uvicorn.run(_app(url), port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


def _app(url: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        engine = open_engine(url)
        app.state.sessions = Sessions(engine)
        yield
        await engine.dispose()

    app = FastAPI(title="The peer", lifespan=lifespan)
    app.include_router(router)
    return app


async def _migrate(url: str) -> None:
    engine = open_engine(url)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    await engine.dispose()


async def _demo(url: str, users: int, products: int, orders: int) -> None:
    engine = open_engine(url)
    await fill(engine, users, products, orders)
    await engine.dispose()


async def _new_key(url: str, scopes: str) -> str:
    engine = open_engine(url)
    key = secrets.token_urlsafe(32)
    async with AsyncSession(engine) as session:
        session.add(ApiKey(hash=hash_of(key), scopes=scopes.split(",")))
        await session.commit()
    await engine.dispose()
    return key


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("migrate")
    demo = commands.add_parser("demo")
    for rows in ("--users", "--products", "--orders"):
        demo.add_argument(rows, type=int, required=True)
    commands.add_parser("serve").add_argument("--port", type=int, required=True)
    keys = commands.add_parser("keys")
    keys.add_argument("action", choices=["create"])
    keys.add_argument("--scopes", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
