"""The ceiling: bare uvicorn giving recorded answers by method and target. It computes nothing at all."""

import argparse
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.recordings import recorded

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Ceiling:
    def __init__(self, file: Path) -> None:
        self._answers = {
            (recording.method, recording.target.encode()): (
                {"type": "http.response.start", "status": recording.status, "headers": recording.headers},
                {"type": "http.response.body", "body": recording.body},
            )
            for recording in recorded(file)
        }

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        target = scope["raw_path"]
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        start, body = self._answers[scope["method"], target]
        await send(start)
        await send(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    uvicorn.run(
        Ceiling(options.recordings),
        port=options.port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
