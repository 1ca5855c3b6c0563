"""Persisted queries, as Apollo's clients ask for them: a document by the SHA-256 of its text.

The hash alone names a document that was sent with it before; if it is not known, the client is told so and
sends both. What was sent once is known to all processes, through the database; in front of it each remembers
what it met. With an allowlist nothing is registered, and only what is on the list is answered.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Iterable
from http import HTTPStatus
from pathlib import Path

from tradepost.clock import Clock, instant, parse_instant
from tradepost.graphql.allowlist import Allowlist
from tradepost.graphql.asked import Asked
from tradepost.graphql.documents import Document, Documents, Recent
from tradepost.graphql.errors import (
    PERSISTED_QUERY_HASH_MISMATCH,
    PERSISTED_QUERY_NOT_FOUND,
    refusal,
)
from tradepost.problems import Problem
from tradepost.storage.database import Database, Writing
from tradepost.storage.statements import persisted_queries

_log = logging.getLogger("tradepost.graphql")

KEPT = 4096  # documents, those used last
TOUCH_MS = 3600 * 1000  # when a document was last used is exact to an hour
_MAX_MEMORY = 8 << 20  # of texts by their hash


class _Known:
    """A text, and when it was last noted that it is used."""

    __slots__ = ("text", "touched")

    def __init__(self, text: str, touched: int) -> None:
        self.text = text
        self.touched = touched


class PersistedQueries:
    """Knows which document a request asks for. `allowlist` raises `BadSetting` if it cannot be used."""

    def __init__(
        self, database: Database, clock: Clock, documents: Documents, allowlist: Path | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._documents = documents
        self._allowlist = Allowlist.load(allowlist, documents) if allowlist else None
        self._known: Recent[_Known] = Recent(_MAX_MEMORY)
        self._touching: set[asyncio.Task[None]] = set()

    def document(self, asked: Asked) -> Document | Awaitable[Document]:
        """The document a request asks for, at once or to be awaited; raises `Refused`."""
        hash_, text = asked.hash, asked.query
        if hash_ is not None and text is not None and hashlib.sha256(text.encode()).hexdigest() != hash_:
            raise refusal(PERSISTED_QUERY_HASH_MISMATCH, "provided sha does not match query")
        if self._allowlist is not None:
            return self._allowlist.document(hash_, text)
        if hash_ is None:
            return self._documents.get(text or "")
        return self._persisted(hash_, text)

    async def _persisted(self, hash_: str, text: str | None) -> Document:
        if text is None:
            return self._documents.get(await self._find(hash_))
        document = self._documents.get(text)
        if self._used(hash_) is None:
            await self._register(hash_, text)
        return document

    def listed(self) -> Iterable[Document]:
        """What may be asked, if that is known beforehand."""
        return self._allowlist.documents() if self._allowlist else ()

    async def finish(self) -> None:
        """Waits for the notes of use that are still being written."""
        await asyncio.gather(*self._touching)

    async def _find(self, hash_: str) -> str:
        known = self._used(hash_)
        if known is not None:
            return known
        row = await self._database.reading().row(persisted_queries.FIND, hash=hash_)
        if row is None:
            # Apollo's clients wait for this message. Not all of them read it if the status is not 200, which
            # Apollo's server gives for either media type.
            raise refusal(PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound", status=HTTPStatus.OK)
        self._remember(hash_, row[0], parse_instant(row[1]))
        return self._used(hash_) or row[0]

    async def _register(self, hash_: str, text: str) -> None:
        """Makes a document known to all; that it cannot be written down keeps nobody from its answer."""
        now = self._clock.now()

        async def keep(tx: Writing) -> None:
            await tx.run(persisted_queries.KEEP, hash=hash_, document=text, now=instant(now))
            await tx.run(persisted_queries.TRIM, kept=KEPT)

        try:
            await self._database.write(keep)
        except Problem:
            _log.warning("could not keep the persisted query %s", hash_)
        else:
            self._remember(hash_, text, now)

    def _remember(self, hash_: str, text: str, touched: int) -> None:
        self._known.keep(hash_, _Known(text, touched), len(hash_) + 2 * len(text))

    def _used(self, hash_: str) -> str | None:
        """The text of a hash that was met before; if that was long ago, it is noted that it is used."""
        known = self._known.get(hash_)
        if known is None:
            return None
        now = self._clock.now()
        if now - known.touched >= TOUCH_MS:
            known.touched = now
            task = asyncio.create_task(self._touch(hash_, instant(now)))
            self._touching.add(task)
            task.add_done_callback(self._touching.discard)
        return known.text

    async def _touch(self, hash_: str, now: str) -> None:
        async def touch(tx: Writing) -> None:
            await tx.run(persisted_queries.TOUCH, at_hash=hash_, now=now)

        try:
            await self._database.write(touch)
        except Problem:
            _log.warning("could not note that the persisted query %s is used", hash_)
