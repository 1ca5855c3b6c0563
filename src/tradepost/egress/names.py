"""Names of hosts, looked up in threads of their own, and the addresses found judged before any is dialled.

The system's resolver blocks, for half a minute if a server of names is silent; in the loop's own few threads
that would hold up everything else that needs one.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aiohttp.abc import AbstractResolver, ResolveResult

from tradepost.egress.addresses import check

Find = Callable[[str], Sequence[str]]
Addresses = tuple[str, ...]

_THREADS = 32
_AT_ONCE = 8  # look-ups for each thread, under way or waiting for one
_KEPT_SECONDS = 30.0
_KEPT = 10_000
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def find(host: str) -> Sequence[str]:
    """The addresses of a host as the system finds them, IPv6 scopes included; blocks. Raises `OSError`."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Names(AbstractResolver):
    """Finds the addresses of hosts; good answers are kept for half a minute.

    `find` does the work, in one of `threads`; `now` gives seconds that only grow.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        find: Find = find,
        now: Callable[[], float] = time.monotonic,
        threads: int = _THREADS,
    ) -> None:
        self.allow_private = allow_private
        self._find = find
        self._now = now
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="names")
        self._most = _AT_ONCE * threads
        self._finding: dict[str, asyncio.Future[Addresses]] = {}
        self._kept: dict[str, tuple[float, Addresses]] = {}

    async def addresses(self, host: str) -> Addresses:
        """All addresses of a host, one at least.

        Raises `Blocked` if any of them may not be dialled, `OSError` if none is found. However many ask for
        a host, it is looked up once; a look-up goes on when those who asked have left.
        """
        kept = self._kept.get(host)
        if kept is not None and kept[0] > self._now():
            return kept[1]
        finding = self._finding.get(host) or self._begin(host)
        await asyncio.wait([finding])
        if finding.cancelled():
            raise OSError("names are not looked up any more")
        return finding.result()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """What aiohttp asks, once for each connection it makes to a name; raises as `addresses` does."""
        return [
            _result(host, address, port)
            for address in await self.addresses(host)
            if family in (socket.AF_UNSPEC, _family(address))
        ]

    async def close(self) -> None:
        """Looks no more names up; those who wait for one are told so."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for finding in tuple(self._finding.values()):
            finding.cancel()

    def _begin(self, host: str) -> asyncio.Future[Addresses]:
        loop = asyncio.get_running_loop()
        if len(self._finding) >= self._most:
            raise OSError("too many names are being looked up")
        try:
            finding = loop.run_in_executor(self._threads, self._look_up, host)
        except RuntimeError as error:
            raise OSError("names are not looked up any more") from error
        self._finding[host] = finding
        finding.add_done_callback(partial(self._found, host))
        return finding

    def _look_up(self, host: str) -> Addresses:
        found = tuple(dict.fromkeys(self._find(host)))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        for address in found:
            check(address, allow_private=self.allow_private)
        return found

    def _found(self, host: str, finding: asyncio.Future[Addresses]) -> None:
        """Keeps a good answer; a bad one is looked at here too, so that asyncio does not miss it."""
        del self._finding[host]
        if finding.cancelled() or finding.exception() is not None:
            return
        self._kept.pop(host, None)
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[host] = (self._now() + _KEPT_SECONDS, finding.result())


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host, host=address, port=port, family=_family(address), proto=0, flags=_NUMERIC
    )
