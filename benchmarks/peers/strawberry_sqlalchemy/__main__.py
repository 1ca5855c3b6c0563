"""The peer's command: `load` puts tradepost's export into its database, `serve` serves it.

The tables and API keys are those of the REST peer, whose command makes them.
"""

import argparse
import asyncio
import os
from pathlib import Path

import uvicorn
import uvloop

from benchmarks.peers.fastapi_sqlalchemy.database import Sessions, open_engine
from benchmarks.peers.strawberry_sqlalchemy.access import Keys
from benchmarks.peers.strawberry_sqlalchemy.endpoint import Endpoint
from benchmarks.peers.strawberry_sqlalchemy.loading import load


def main() -> None:
    options = _options()
    url = os.environ["PEER_DATABASE_URL"]
    if options.command == "load":
        asyncio.run(_load(url, options.folder))
    else:
        uvloop.run(_serve(url, options.port))


async def _load(url: str, folder: Path) -> None:
    engine = open_engine(url)
    await load(engine, folder)
    await engine.dispose()


async def _serve(url: str, port: int) -> None:
    engine = open_engine(url)
    sessions = Sessions(engine)
    endpoint = Endpoint(sessions, Keys(sessions))
    config = uvicorn.Config(
        endpoint, port=port, http="httptools", lifespan="off", access_log=False, log_level="warning"
    )
    await uvicorn.Server(config).serve()
    await engine.dispose()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("load").add_argument("folder", type=Path)
    commands.add_parser("serve").add_argument("--port", type=int, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
