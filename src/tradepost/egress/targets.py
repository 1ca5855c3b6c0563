"""Targets: URLs that webhooks may be posted to, judged when they are registered and whenever they are used.

What is judged here is what is dialled: the URL that goes out is made of the parts that were judged, and the
addresses that a name turns out to have are judged again by `names` and by the socket (see `client`).
"""

import asyncio
import re
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from tradepost.egress import addresses, hosts
from tradepost.egress.addresses import Blocked
from tradepost.egress.hosts import Host
from tradepost.egress.names import Names

_LONGEST = 2048
_KEPT = 4096  # URLs whose judgement is remembered, and hosts of which it is known where they point
_REGISTERING = 8
_PATIENCE_SECONDS = 2.0
_FRESH_SECONDS = 60.0
_LAST_PORT = 65535

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?P<fragment>#.*)?",
    re.ASCII | re.IGNORECASE,
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_UNPRINTABLE = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_AS_IT_STANDS = "!$%&'()*+,/:;=?@[]|"  # next to letters, digits and -._~


class Target(NamedTuple):
    """A URL that was judged: `url` goes out, `flaw` is None; or `flaw` says in words why it may not.

    `address` says what the address is that it may not point at, as in `a loopback address`.
    """

    url: URL | None
    name: str | None
    flaw: str | None
    address: str | None = None


class Targets:
    """Judges URLs. `allow_private`, for development: http, any name, and this network's addresses."""

    def __init__(
        self, *, allow_private: bool, names: Names | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.names = names or Names(allow_private=allow_private)
        # Threads apart, so that nobody who registers names can keep those of deliveries from being found.
        self._registering = names or Names(allow_private=allow_private, at_once=_REGISTERING)
        self._now = now
        self._judged = lru_cache(_KEPT)(partial(_judge, allow_private=allow_private))
        self._pointing: dict[str, tuple[float, str]] = {}

    def refusal(self, url: str) -> str | None:
        """What is wrong with a URL, as in `has to be an https URL`; None if nothing is known to be.

        Looks nothing up. A name that `look_up` found to point where it may not is refused for a minute.
        """
        return self.target(url).flaw

    def target(self, url: str) -> Target:
        """The same, with what may be dialled."""
        if len(url) > _LONGEST:
            return _flawed(f"may not be longer than {_LONGEST} characters")
        judged = self._judged(url)
        if self._pointing and judged.name is not None:
            until, address = self._pointing.get(judged.name, (0.0, ""))
            if until > self._now():
                return _flawed(f"points at {address}", address)
        return judged

    async def look_up(self, url: str) -> None:
        """Finds out for `refusal` where the host of a URL points; never raises.

        Gives up after two seconds. A name that is not found is no flaw: it may be tomorrow.
        """
        name = self._judged(url).name if len(url) <= _LONGEST else None
        if name is None:
            return
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._registering.addresses(name)
        except Blocked as blocked:
            self._remember(name, blocked.words)
        except Exception:  # noqa: BLE001, S110 (whatever keeps it from being found, the sender will see)
            pass
        else:
            self._pointing.pop(name, None)

    async def close(self) -> None:
        """Looks nothing up any more."""
        await self.names.close()
        await self._registering.close()

    def _remember(self, name: str, address: str) -> None:
        self._pointing.pop(name, None)
        if len(self._pointing) >= _KEPT:
            del self._pointing[next(iter(self._pointing))]
        self._pointing[name] = (self._now() + _FRESH_SECONDS, address)


def _flawed(flaw: str, address: str | None = None) -> Target:
    return Target(None, None, flaw, address)


def _judge(url: str, *, allow_private: bool) -> Target:
    """A URL by itself, part by part."""
    if _UNPRINTABLE.search(url):
        return _flawed("may not hold spaces, control characters or backslashes")
    parts = _URL.fullmatch(url)
    schemes = ("https", "http") if allow_private else ("https",)
    if not parts or (scheme := parts["scheme"].lower()) not in schemes:
        return _flawed(f"has to be an {' or '.join(schemes)} URL")
    if "@" in parts["authority"]:
        return _flawed("may not carry a user name or password")
    if parts["fragment"] is not None:
        return _flawed("may not carry a fragment")
    return _judge_authority(scheme, parts["authority"], parts["rest"], allow_private=allow_private)


def _judge_authority(scheme: str, authority: str, rest: str, *, allow_private: bool) -> Target:
    parts = _AUTHORITY.fullmatch(authority)
    if parts and not parts["host"]:
        return _flawed("has to name a host")
    try:
        host = hosts.parse(parts["host"] if parts else "")
    except ValueError:  # UnicodeError among them
        return _flawed("has a host that is neither a name nor an address, or a port that is no number")
    port = parts["port"] if parts else None
    if port and not 1 <= int(port) <= _LAST_PORT:
        return _flawed("has a port out of range")
    flawed = _judge_host(host, allow_private=allow_private)
    return flawed or Target(_dialled(scheme, host, port, rest), None if host.is_address else host.text, None)


def _judge_host(host: Host, *, allow_private: bool) -> Target | None:
    if host.is_address:
        address = addresses.refusal(host.text, allow_private=allow_private)
        return _flawed(f"names {address}", address) if address else None
    if not allow_private and not hosts.is_public(host.text):
        return _flawed("names a host that is not public")
    return None


def _dialled(scheme: str, host: Host, port: str | None, rest: str) -> URL:
    """Made of the parts that were judged; path and query stay as they are but for what no URL may hold."""
    path = rest if rest.startswith("/") else f"/{rest}"
    authority = f"{host.bracketed}:{int(port)}" if port else host.bracketed
    return URL(f"{scheme}://{authority}{quote(path, safe=_AS_IT_STANDS)}", encoded=True)
