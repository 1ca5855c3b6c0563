"""Targets: URLs that webhooks may be posted to, judged when they are registered and whenever they are used.

What is judged is what is dialled: the URL of a request is made of the parts that were judged, and the
addresses of a name are judged again by the resolver and where the socket is made (see `client`).
"""

import asyncio
import re
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import quote

from yarl import URL

from tradepost.egress import addresses, hosts
from tradepost.egress.addresses import Blocked
from tradepost.egress.bounded_dict import BoundedDict
from tradepost.egress.hosts import Host
from tradepost.egress.resolver import NameResolver

_LONGEST = 2048
_REMEMBERED = 4096  # judged URLs, and blocked names
_AT_REGISTRATION = 8  # look-ups at once
_LOOK_UP_SECONDS = 2.0
_BLOCKED_SECONDS = 60.0
_LAST_PORT = 65535

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?P<fragment>#.*)?",
    re.ASCII | re.IGNORECASE,
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]*))?")
_UNPRINTABLE = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNQUOTED = "!$%&'()*+,/:;=?@[]|"  # besides letters, digits and -._~


class Target(NamedTuple):
    """A judged URL: either `url` is what requests use, or `flaw` says in words why it may not be used.

    `name` is its host, unless that is an address. `address` describes the address to which it may not point,
    such as `a loopback address`.
    """

    url: URL | None
    name: str | None
    flaw: str | None
    address: str | None = None


class Targets:
    """Judges URLs. In development, `allow_private` permits http, any name, and this network's addresses."""

    def __init__(self, *, allow_private: bool, resolver: NameResolver | None = None) -> None:
        self.resolver = resolver or NameResolver(allow_private=allow_private)
        # Threads of its own, so that registered names cannot hold up the look-ups of deliveries.
        self._registering = resolver or NameResolver(allow_private=allow_private, at_once=_AT_REGISTRATION)
        self._judged = lru_cache(_REMEMBERED)(partial(_judge, allow_private=allow_private))
        self._blocked = BoundedDict[tuple[float, str]](_REMEMBERED)  # names: until when, and what address

    def refusal(self, url: str) -> str | None:
        """What is wrong with a URL, such as `must be an https URL`; None if nothing is known to be.

        Looks nothing up. If `look_up` found that a name points to an address that may not be dialled, the
        name is refused for a minute.
        """
        return self.target(url).flaw

    def target(self, url: str) -> Target:
        """What `refusal` says of a URL, and the URL to use if it says nothing."""
        if len(url) > _LONGEST:
            return _flawed(f"must be at most {_LONGEST} characters long")
        judged = self._judged(url)
        if self._blocked and judged.name is not None:
            until, address = self._blocked.get(judged.name, (0.0, ""))
            if until > self.resolver.monotonic():
                return _flawed(f"points at {address}", address)
        return judged

    async def look_up(self, url: str) -> None:
        """Finds out for `refusal` where the host of a URL points; gives up after two seconds, never raises.

        A name that does not exist is not a flaw: it may exist tomorrow.
        """
        name = self._judged(url).name if len(url) <= _LONGEST else None
        if name is None:
            return
        try:
            async with asyncio.timeout(_LOOK_UP_SECONDS):
                await self._registering.addresses(name)
        except Blocked as blocked:
            self._blocked[name] = self.resolver.monotonic() + _BLOCKED_SECONDS, blocked.description
        except Exception:  # noqa: BLE001, S110 (whatever the reason is, deliveries will meet it)
            pass
        else:
            self._blocked.pop(name, None)

    async def close(self) -> None:
        """Looks up no more names."""
        await self.resolver.close()
        await self._registering.close()


def _flawed(flaw: str, address: str | None = None) -> Target:
    return Target(None, None, flaw, address)


def _judge(url: str, *, allow_private: bool) -> Target:
    """Judges a URL by its text alone, part by part."""
    if _UNPRINTABLE.search(url):
        return _flawed("must not contain spaces, control characters or backslashes")
    parts = _URL.fullmatch(url)
    schemes = ("https", "http") if allow_private else ("https",)
    if not parts or (scheme := parts["scheme"].lower()) not in schemes:
        return _flawed(f"must be an {' or '.join(schemes)} URL")
    if "@" in parts["authority"]:
        return _flawed("must not contain a user name or password")
    if parts["fragment"] is not None:
        return _flawed("must not contain a fragment")
    return _judge_authority(scheme, parts["authority"], parts["rest"], allow_private=allow_private)


def _judge_authority(scheme: str, authority: str, rest: str, *, allow_private: bool) -> Target:
    parts = _AUTHORITY.fullmatch(authority)
    if parts and not parts["host"]:
        return _flawed("must name a host")
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
    """The URL made of the judged parts. Path and query stay as they are, except what no URL may contain."""
    path = rest if rest.startswith("/") else f"/{rest}"
    authority = f"{host.bracketed}:{int(port)}" if port else host.bracketed
    return URL(f"{scheme}://{authority}{quote(path, safe=_UNQUOTED)}", encoded=True)
