"""The client of webhooks: one POST, one bounded answer, over connections to addresses that may be dialled.

It follows no redirect, remembers no cookie, unpacks no body and takes no proxy from the environment: each
would let somebody else decide where requests go or what they cost. Nor does it ever send a POST twice: if a
receiver closes a kept-alive connection just then, that is reported, because the receiver may have read the
request.
"""

import asyncio
import math
import socket
import ssl
import time
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import (
    AddrInfoType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    hdrs,
)
from multidict import CIMultiDict

from tradepost import __version__
from tradepost.egress import addresses
from tradepost.egress.bounded_connection import IdleConnections, RequestBody
from tradepost.egress.failure import failure
from tradepost.egress.retry_after import retry_after
from tradepost.egress.targets import Target, Targets

_KEEP_ALIVE_SECONDS = 4  # less than the 5 s of common servers, which might close while we send
_IDLE = 1000  # connections that are kept alive; aiohttp bounds only those in use
_BODY_READ_BYTES = 64 * 1024  # so that the connection can be used again
_BODY_KEPT_BYTES = 1024
_FIELDS, _FIELD_BYTES = 128, 8190  # of a head, at most
_READ_AHEAD_BYTES = 16 * 1024
_USER_AGENT = (hdrs.USER_AGENT, f"tradepost/{__version__}")


class Reply(NamedTuple):
    """What came of a POST: either `status`, after a complete head, or `error`, which says in words why not.

    `body` is the first 1,024 bytes as they came, `retry_after` what the receiver asked for, `seconds` how
    long the exchange took; both in seconds.
    """

    status: int | None
    error: str | None
    body: bytes
    retry_after: float | None
    seconds: float


class Client:
    """Posts to `targets`, each time within so many seconds, whatever the receiver does.

    The seconds cover the look-up of the name, connecting, TLS, the request and the head of the response. The
    body is read in the rest of that time; whatever it does, the status stands. At most `idle` connections are
    kept open for the next POST.
    """

    def __init__(
        self, targets: Targets, *, seconds: float, tls: ssl.SSLContext | None = None, idle: int = _IDLE
    ) -> None:
        self._targets = targets
        self._seconds = seconds
        self._tls = tls
        self._idle = IdleConnections(idle)
        self._session: ClientSession | None = None
        self._closed = False

    async def post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Reply:
        """Posts a body; never raises. `headers` must include its `Content-Type`."""
        began = time.monotonic()
        target = self._targets.target(url)
        if target.url is None or self._closed:
            return Reply(None, _refused(target), b"", None, time.monotonic() - began)
        payload = RequestBody(body, self._idle)
        try:
            session = self._session or self._open()
            fields = CIMultiDict((*headers, _USER_AGENT))
            response = await session.post(target.url, data=payload, headers=fields, allow_redirects=False)
        except Exception as error:  # noqa: BLE001 (whatever it is, there is no response)
            payload.abort()
            return Reply(None, failure(error, self._seconds), b"", None, time.monotonic() - began)
        except asyncio.CancelledError:
            payload.abort()
            raise
        excerpt = await _read(response, payload)
        after = response.headers.get(hdrs.RETRY_AFTER)
        wait = retry_after(after, time.time()) if after else None
        return Reply(response.status, None, excerpt, wait, time.monotonic() - began)

    async def close(self) -> None:
        """Closes all connections; requests that are under way fail, and so do later ones."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> ClientSession:
        """The session, made on first use because it belongs to the running loop."""
        connector = TCPConnector(
            resolver=self._targets.resolver,
            use_dns_cache=False,
            socket_factory=self._socket,
            ssl=self._tls or True,
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
        )
        self._session = ClientSession(
            connector=connector,
            request_class=_Request,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=self._seconds, ceil_threshold=math.inf),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_READ_AHEAD_BYTES,
            max_line_size=_FIELD_BYTES,
            max_field_size=_FIELD_BYTES,
            max_headers=_FIELDS,
        )
        return self._session

    def _socket(self, info: AddrInfoType) -> socket.socket:
        """The last check, and the only one for IP addresses in URLs: aiohttp asks no resolver about them."""
        family, kind, protocol, _, address = info
        addresses.check(str(address[0]), allow_private=self._targets.resolver.allow_private)
        return socket.socket(family, kind, protocol)


class _Request(ClientRequest):
    """A request without the header fields that aiohttp adds by itself, such as `Accept-Encoding`."""

    DEFAULT_HEADERS = {hdrs.ACCEPT: "*/*"}  # noqa: RUF012 (aiohttp declares it so)


async def _read(response: ClientResponse, payload: RequestBody) -> bytes:
    """The beginning of a body. If the body ends within bounds, the connection is kept; else it is aborted."""
    excerpt, count = b"", 0
    payload.read(response.content)
    try:
        while count <= _BODY_READ_BYTES and (piece := await response.content.readany()):
            count += len(piece)
            excerpt += piece[: _BODY_KEPT_BYTES - len(excerpt)]
    except Exception:  # noqa: BLE001, S110 (the head stands, and so does what came of the body)
        pass
    finally:
        if response.connection is None:
            payload.answered()
        else:
            payload.abort()
            response.close()
    return excerpt


def _refused(target: Target) -> str:
    if target.address is not None:
        return f"the address is not allowed: {target.address}"
    if target.flaw is not None:
        return f"the URL is not allowed: it {target.flaw}"
    return "no more requests are made: the service is being stopped"
