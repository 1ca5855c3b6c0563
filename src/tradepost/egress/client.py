"""The client of webhooks: one POST, one bounded answer, over connections to addresses that may be dialled.

Nothing is followed, remembered, unpacked or taken from the environment: a redirect, a cookie, a compressed
body and a proxy are all somebody else's say in where requests go. Nor is a POST ever sent twice: one that met
a kept-alive connection as the receiver closed it is reported, because the receiver may have read it.
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
from tradepost.egress.failure import failure
from tradepost.egress.retry_after import retry_after
from tradepost.egress.targets import Target, Targets
from tradepost.egress.wire import Idle, Letter

_KEEP_ALIVE_SECONDS = 4  # less than the 5 s of common servers, which would close while we send
_IDLE = 1000  # connections that are kept alive; aiohttp bounds those in use alone
_BODY_READ = 64 * 1024  # so that the connection can be used again
_BODY_KEPT = 1024
_FIELDS, _FIELD_BYTES = 128, 8190  # of a head; together the longest there may be
_READ_AHEAD = 16 * 1024
_USER_AGENT = (hdrs.USER_AGENT, f"tradepost/{__version__}")


class Reply(NamedTuple):
    """What came of a POST. Either `status` is there, of a complete head, or `error` says in words why not.

    `body` is the first 1,024 bytes at most, as they came; `retry_after` and `seconds` (of the whole exchange)
    are seconds.
    """

    status: int | None
    error: str | None
    body: bytes
    retry_after: float | None
    seconds: float


class Client:
    """Posts to `targets`, each within so many seconds, whatever the receiver does.

    The seconds are for the look-up of the name, connecting, TLS, the request and the head of the answer. A
    body is read as far as it comes in what is left of them, and takes nothing back. At most `idle`
    connections are kept open for the next POST.
    """

    def __init__(
        self, targets: Targets, *, seconds: float, tls: ssl.SSLContext | None = None, idle: int = _IDLE
    ) -> None:
        self._targets = targets
        self._seconds = seconds
        self._tls = tls
        self._idle = Idle(idle)
        self._session: ClientSession | None = None
        self._closed = False

    async def post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Reply:
        """Posts a body; never raises. `headers` name its `Content-Type`."""
        began = time.monotonic()
        target = self._targets.target(url)
        if target.url is None or self._closed:
            return Reply(None, _refused(target), b"", None, time.monotonic() - began)
        letter = Letter(body, self._idle)
        try:
            session = self._session or self._open()
            fields = CIMultiDict((*headers, _USER_AGENT))
            answer = await session.post(target.url, data=letter, headers=fields, allow_redirects=False)
        except Exception as error:  # noqa: BLE001 (whatever it is, there is no answer)
            letter.abort()
            return Reply(None, failure(error, self._seconds), b"", None, time.monotonic() - began)
        except asyncio.CancelledError:
            letter.abort()
            raise
        kept = await _read(answer, letter)
        after = answer.headers.get(hdrs.RETRY_AFTER)
        wish = retry_after(after, time.time()) if after else None
        return Reply(answer.status, None, kept, wish, time.monotonic() - began)

    async def close(self) -> None:
        """Closes all connections; what is under way fails, and so does what comes later."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> ClientSession:
        """Made on first use: it belongs to the loop that runs then."""
        connector = TCPConnector(
            resolver=self._targets.names,
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
            read_bufsize=_READ_AHEAD,
            max_line_size=_FIELD_BYTES,
            max_field_size=_FIELD_BYTES,
            max_headers=_FIELDS,
        )
        return self._session

    def _socket(self, info: AddrInfoType) -> socket.socket:
        """The last gate, and the only one for IP addresses in URLs: those aiohttp asks no resolver about."""
        family, kind, protocol, _, address = info
        addresses.check(str(address[0]), allow_private=self._targets.names.allow_private)
        return socket.socket(family, kind, protocol)


class _Request(ClientRequest):
    """Asks for nothing that the headers given do not ask for: no `Accept-Encoding`."""

    DEFAULT_HEADERS = {hdrs.ACCEPT: "*/*"}  # noqa: RUF012 (aiohttp declares it so)


async def _read(answer: ClientResponse, letter: Letter) -> bytes:
    """The beginning of a body; its connection is left for the next if it ends in bounds, else broken off."""
    kept, count = b"", 0
    letter.read(answer.content)
    try:
        while count <= _BODY_READ and (piece := await answer.content.readany()):
            count += len(piece)
            kept += piece[: _BODY_KEPT - len(kept)]
    except Exception:  # noqa: BLE001, S110 (the head stands, and what came of the body)
        pass
    finally:
        if answer.connection is None:
            letter.answered()
        else:
            letter.abort()
            answer.close()
    return kept


def _refused(target: Target) -> str:
    if target.address is not None:
        return f"the address is not allowed: {target.address}"
    if target.flaw is not None:
        return f"the URL is not allowed: it {target.flaw}"
    return "no more requests are made: the service is being stopped"
