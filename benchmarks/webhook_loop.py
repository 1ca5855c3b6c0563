"""The ceiling of deliveries: a loop of aiohttp that signs and posts to the sink, and does nothing else.

As many are in flight as a worker has out to ten endpoints, over ten paths, each with a body and headers like
those of a delivery. Runs in a process of its own.
"""

import argparse
import asyncio
import base64
import itertools
import subprocess
import sys
import time
import uuid

import msgspec
import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, hdrs

from benchmarks import cores
from benchmarks.servers import ROOT
from benchmarks.webhook_sink import Sink
from tradepost import __version__
from tradepost.webhooks.signature import signed

PATHS = tuple(f"/{number}" for number in range(10))
_IN_FLIGHT = 40
_LIMIT = 120.0
_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
_FIELDS = [(hdrs.CONTENT_TYPE, "application/cloudevents+json"), (hdrs.USER_AGENT, f"tradepost/{__version__}")]


class Posted(msgspec.Struct, frozen=True):
    """A second, and microseconds of CPU each."""

    rate: float
    cpu: float


def measure(sink: Sink, count: int, length: int, loop: str) -> Posted:
    """Of so many posts with a body of so many bytes; `loop` is asyncio or uvloop."""
    options = {"--port": sink.port, "--count": count, "--length": length, "--loop": loop}
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "benchmarks.webhook_loop", *words]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        try:
            cores.pin(child.pid, cores.SERVER_CORE)
            output, last_words = child.communicate(timeout=_LIMIT)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise RuntimeError(f"the bare loop failed:\n{last_words.decode()[-2_000:]}")
    sink.take()
    return msgspec.json.decode(output, type=Posted)


async def _post(port: int, count: int, length: int) -> Posted:
    numbers = itertools.islice(itertools.count(), count)
    frame = b'{"subject":""}'
    body = frame[:-2] + b"x" * (length - len(frame)) + frame[-2:]
    event_id = str(uuid.uuid4())
    connector = TCPConnector(limit=0)
    timeout = ClientTimeout(total=5)
    async with ClientSession(
        connector=connector, timeout=timeout, skip_auto_headers=[hdrs.ACCEPT_ENCODING]
    ) as session:

        async def post(path: str) -> None:
            url = f"http://127.0.0.1:{port}{path}"
            for _ in numbers:
                headers = [*_FIELDS, *signed(event_id, int(time.time()), body, _SECRET)]
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                    await answer.read()

        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[post(path) for path, _ in zip(itertools.cycle(PATHS), range(_IN_FLIGHT))])
        elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    return Posted(count / elapsed, 1e6 * cpu / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--port", "--count", "--length"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], required=True)
    options = parser.parse_args()
    run = uvloop.run if options.loop == "uvloop" else asyncio.run
    posted = run(_post(options.port, options.count, options.length))
    sys.stdout.buffer.write(msgspec.json.encode(posted))


if __name__ == "__main__":
    main()
