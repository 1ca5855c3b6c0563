"""Names of hosts, looked up in threads of their own, and the addresses found judged before any is dialled.

The system's resolver blocks, for half a minute if a server of names is silent; in the loop's own few threads
that would hold up everything else that needs one. While one is silent, what it said before stands for ten
minutes (RFC 8767): those addresses were judged, and are judged again where a socket is made.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from aiohttp.abc import AbstractResolver, ResolveResult

from tradepost.egress.addresses import Blocked, check
from tradepost.egress.threads import Threads

Find = Callable[[str], Sequence[str]]
Addresses = tuple[str, ...]

_AT_ONCE = 128
_FRESH_SECONDS = 30.0
_STALE_SECONDS = 600.0
_PATIENCE_SECONDS = 1.0  # with a name of which an old answer is kept
_KEPT = 10_000
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def find(host: str) -> Sequence[str]:
    """The addresses of a host as the system finds them, IPv6 scopes included; blocks. Raises `OSError`."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _Kept(NamedTuple):
    """A good answer: what is said without asking until `fresh`, and if nobody answers, until `stale`."""

    fresh: float
    stale: float
    addresses: Addresses


class Names(AbstractResolver):
    """Finds the addresses of hosts; good answers are kept for half a minute, and longer if there is no newer.

    `find` does the work, `at_once` in as many threads; `now` gives seconds that only grow.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        find: Find = find,
        now: Callable[[], float] = time.monotonic,
        at_once: int = _AT_ONCE,
    ) -> None:
        self.allow_private = allow_private
        self._find = find
        self._now = now
        self._threads = Threads(self._look_up, at_once=at_once)
        self._finding: dict[str, asyncio.Task[Addresses]] = {}
        self._kept: dict[str, _Kept] = {}
        self._closed = False

    async def addresses(self, host: str) -> Addresses:
        """All addresses of a host, one at least.

        Raises `Blocked` if any of them may not be dialled, `OSError` if none is found. However many ask for
        a host, it is looked up once; a look-up goes on when those who asked have left, or have an old answer
        because it took more than a second.
        """
        kept = self._old(host)
        if kept is not None and kept.fresh > self._now():
            return kept.addresses
        try:
            return await self._anew(host, _PATIENCE_SECONDS if kept else None)
        except OSError:
            kept = self._old(host)
            if kept is None:
                raise
            self._kept[host] = kept._replace(fresh=self._now() + _FRESH_SECONDS)
            return kept.addresses

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
        self._closed = True
        self._kept.clear()
        for finding in tuple(self._finding.values()):
            finding.cancel()

    def _old(self, host: str) -> _Kept | None:
        kept = self._kept.get(host)
        return kept if kept is not None and kept.stale > self._now() else None

    async def _anew(self, host: str, seconds: float | None) -> Addresses:
        """Raises `TimeoutError` if the look-up takes more than so many seconds, and goes on."""
        finding = self._finding.get(host) or self._begin(host)
        await asyncio.wait([finding], timeout=seconds)
        if not finding.done():
            raise TimeoutError
        if finding.cancelled():
            raise OSError("names are not looked up any more")
        return finding.result()

    def _begin(self, host: str) -> asyncio.Task[Addresses]:
        if self._closed:
            raise OSError("names are not looked up any more")
        finding = asyncio.create_task(self._threads.result(host))
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

    def _found(self, host: str, finding: asyncio.Task[Addresses]) -> None:
        """Keeps a good answer. A bad one takes back what was kept, unless it says nothing about the name."""
        del self._finding[host]
        if finding.cancelled():
            return
        error = finding.exception()
        if error is None:
            self._keep(host, finding.result())
        elif isinstance(error, Blocked | socket.gaierror) and error.errno != socket.EAI_AGAIN:
            self._kept.pop(host, None)

    def _keep(self, host: str, addresses: Addresses) -> None:
        self._kept.pop(host, None)
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        fresh = self._now() + _FRESH_SECONDS
        self._kept[host] = _Kept(fresh, fresh + _STALE_SECONDS, addresses)


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host, host=address, port=port, family=_family(address), proto=0, flags=_NUMERIC
    )
