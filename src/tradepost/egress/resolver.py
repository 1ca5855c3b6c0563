"""The resolver: looks host names up in threads of its own, and judges the addresses before any is dialled.

The system's resolver blocks, for half a minute if a name server is silent. In the event loop's own few
threads that would hold up everything else that needs one. While a name server is silent, its last answer
stands for ten minutes (RFC 8767): those addresses were judged, and are judged again where a socket is made.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from aiohttp.abc import AbstractResolver, ResolveResult

from tradepost.egress.addresses import Blocked, check
from tradepost.egress.bounded_dict import BoundedDict
from tradepost.egress.threads import Threads

Lookup = Callable[[str], Sequence[str]]
Addresses = tuple[str, ...]

_AT_ONCE = 128
_FRESH_SECONDS = 30.0
_STALE_SECONDS = 600.0
_REFRESH_SECONDS = 1.0  # before an old answer is used
_CACHED = 10_000
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def system_lookup(host: str) -> Sequence[str]:
    """The addresses of a host as the system finds them, IPv6 scopes included. Blocks; raises `OSError`."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _Cached(NamedTuple):
    """A good answer: used until `fresh_until`, and if there is no other, until `stale_until` (seconds)."""

    fresh_until: float
    stale_until: float
    addresses: Addresses


class NameResolver(AbstractResolver):
    """Finds the addresses of hosts. A good answer is kept for half a minute, longer if there is no newer one.

    `lookup` does the work, in up to `at_once` threads; `monotonic` gives seconds that only grow.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        lookup: Lookup = system_lookup,
        monotonic: Callable[[], float] = time.monotonic,
        at_once: int = _AT_ONCE,
    ) -> None:
        self.allow_private = allow_private
        self._lookup = lookup
        self.monotonic = monotonic
        self._threads = Threads(self._judged_addresses, at_once=at_once)
        self._running: dict[str, asyncio.Task[Addresses]] = {}
        self._cache = BoundedDict[_Cached](_CACHED)
        self._closed = False

    async def addresses(self, host: str) -> Addresses:
        """All addresses of a host, at least one.

        Raises `Blocked` if any of them may not be dialled, `OSError` if none is found. However many callers
        ask for a host, it is looked up once. A look-up goes on when its callers have left, or have got an old
        answer because it took more than a second.
        """
        cached = self._cached(host)
        if cached is not None and cached.fresh_until > self.monotonic():
            return cached.addresses
        try:
            return await self._looked_up(host, _REFRESH_SECONDS if cached else None)
        except OSError:
            cached = self._cached(host)
            if cached is None:
                raise
            self._cache[host] = cached._replace(fresh_until=self.monotonic() + _FRESH_SECONDS)
            return cached.addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """What aiohttp asks once for each connection it makes to a name; raises as `addresses` does."""
        return [
            _result(host, ip, port)
            for ip in await self.addresses(host)
            if family in (socket.AF_UNSPEC, _family(ip))
        ]

    async def close(self) -> None:
        """Looks up no more names; callers that wait for one get an `OSError`."""
        self._closed = True
        self._cache.clear()
        for lookup in tuple(self._running.values()):
            lookup.cancel()

    def _cached(self, host: str) -> _Cached | None:
        cached = self._cache.get(host)
        return cached if cached is not None and cached.stale_until > self.monotonic() else None

    async def _looked_up(self, host: str, seconds: float | None) -> Addresses:
        """Raises `TimeoutError` if the look-up takes more than so many seconds; the look-up goes on."""
        lookup = self._running.get(host) or self._begin(host)
        await asyncio.wait([lookup], timeout=seconds)
        if not lookup.done():
            raise TimeoutError
        if lookup.cancelled():
            raise OSError("names are no longer looked up")
        return lookup.result()

    def _begin(self, host: str) -> asyncio.Task[Addresses]:
        if self._closed:
            raise OSError("names are no longer looked up")
        lookup = asyncio.create_task(self._threads.result(host))
        self._running[host] = lookup
        lookup.add_done_callback(partial(self._ended, host))
        return lookup

    def _judged_addresses(self, host: str) -> Addresses:
        found = tuple(dict.fromkeys(self._lookup(host)))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        for address in found:
            check(address, allow_private=self.allow_private)
        return found

    def _ended(self, host: str, lookup: asyncio.Task[Addresses]) -> None:
        """Caches a good answer. A bad one removes the cached one, unless it says nothing about the name."""
        del self._running[host]
        if lookup.cancelled():
            return
        error = lookup.exception()
        if error is None:
            fresh_until = self.monotonic() + _FRESH_SECONDS
            self._cache[host] = _Cached(fresh_until, fresh_until + _STALE_SECONDS, lookup.result())
        elif isinstance(error, Blocked | socket.gaierror) and error.errno != socket.EAI_AGAIN:
            self._cache.pop(host, None)


def _family(ip: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def _result(host: str, ip: str, port: int) -> ResolveResult:
    return ResolveResult(hostname=host, host=ip, port=port, family=_family(ip), proto=0, flags=_NUMERIC)
