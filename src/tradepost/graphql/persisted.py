"""Persisted queries, as Apollo's clients ask for them: a document by the SHA-256 of its text.

A hash alone names a document that was sent with it before; if it is unknown, the client learns so and sends
both. The database makes registered documents known to all processes, and each process caches those that it
met. With an allowlist, nothing is registered, and only documents on the list are answered.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Iterable
from http import HTTPStatus
from pathlib import Path

from tradepost.clock import Clock, instant, parse_instant
from tradepost.graphql.allowlist import Allowlist
from tradepost.graphql.documents import DocumentCache, ValidDocument
from tradepost.graphql.errors import (
    PERSISTED_QUERY_HASH_MISMATCH,
    PERSISTED_QUERY_NOT_FOUND,
    refusal,
)
from tradepost.graphql.lru_cache import LRUCache
from tradepost.graphql.request import GraphQLRequest
from tradepost.problems import Problem
from tradepost.storage.database import Database, Writing
from tradepost.storage.statements import persisted_queries

_log = logging.getLogger("tradepost.graphql")

KEPT = 4096  # documents, those used most recently
TOUCH_MS = 3600 * 1000  # the time of the last use is exact to an hour
_MAX_MEMORY = 8 << 20  # bytes, of texts by their hash


class _Registered:
    """A registered text, and when its use was last written down."""

    __slots__ = ("text", "touched_ms")

    def __init__(self, text: str, touched_ms: int) -> None:
        self.text = text
        self.touched_ms = touched_ms


class PersistedQueries:
    """Finds the document of a request. Raises `BadSetting` if the allowlist cannot be used."""

    def __init__(
        self, database: Database, clock: Clock, documents: DocumentCache, allowlist: Path | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._documents = documents
        self._allowlist = Allowlist.load(allowlist, documents) if allowlist else None
        self._registered: LRUCache[_Registered] = LRUCache(_MAX_MEMORY)
        self._touching: set[asyncio.Task[None]] = set()

    def document(self, request: GraphQLRequest) -> ValidDocument | Awaitable[ValidDocument]:
        """The document of a request, at once or to be awaited; raises `Refused` if there is none."""
        hash_, text = request.hash, request.query
        if hash_ is not None and text is not None and hashlib.sha256(text.encode()).hexdigest() != hash_:
            raise refusal(PERSISTED_QUERY_HASH_MISMATCH, "provided sha does not match query")
        if self._allowlist is not None:
            return self._allowlist.document(hash_, text)
        if hash_ is None:
            return self._documents.get(text or "")
        return self._persisted(hash_, text)

    async def _persisted(self, hash_: str, text: str | None) -> ValidDocument:
        if text is None:
            return self._documents.get(await self._find(hash_))
        document = self._documents.get(text)
        if self._used(hash_) is None:
            await self._register(hash_, text)
        return document

    def listed(self) -> Iterable[ValidDocument]:
        """The documents of the allowlist, if there is one."""
        return self._allowlist.documents() if self._allowlist else ()

    async def finish(self) -> None:
        """Waits until all uses are written down."""
        await asyncio.gather(*self._touching)

    async def _find(self, hash_: str) -> str:
        text = self._used(hash_)
        if text is not None:
            return text
        row = await self._database.reading().row(persisted_queries.FIND, hash=hash_)
        if row is None:
            # Apollo's clients wait for this message. Not all of them read it unless the status is 200, which
            # Apollo's server answers in both media types.
            raise refusal(PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound", status=HTTPStatus.OK)
        self._remember(hash_, row[0], parse_instant(row[1]))
        return self._used(hash_) or row[0]

    async def _register(self, hash_: str, text: str) -> None:
        """Makes a document known to all processes; a failure to write it down is logged, not raised."""
        now_ms = self._clock.now_ms()

        async def keep(tx: Writing) -> None:
            await tx.run(persisted_queries.KEEP, hash=hash_, document=text, now=instant(now_ms))
            await tx.run(persisted_queries.TRIM, kept=KEPT)

        try:
            await self._database.write(keep)
        except Problem:
            _log.warning("could not keep the persisted query %s", hash_)
        else:
            self._remember(hash_, text, now_ms)

    def _remember(self, hash_: str, text: str, touched_ms: int) -> None:
        self._registered.put(hash_, _Registered(text, touched_ms), len(hash_) + 2 * len(text))

    def _used(self, hash_: str) -> str | None:
        """The text of a hash that this process has met; writes its use down once an hour."""
        registered = self._registered.get(hash_)
        if registered is None:
            return None
        now_ms = self._clock.now_ms()
        if now_ms - registered.touched_ms >= TOUCH_MS:
            registered.touched_ms = now_ms
            task = asyncio.create_task(self._touch(hash_, instant(now_ms)))
            self._touching.add(task)
            task.add_done_callback(self._touching.discard)
        return registered.text

    async def _touch(self, hash_: str, now: str) -> None:
        async def touch(tx: Writing) -> None:
            await tx.run(persisted_queries.TOUCH, at_hash=hash_, now=now)

        try:
            await self._database.write(touch)
        except Problem:
            _log.warning("could not note that the persisted query %s is used", hash_)
