"""Idempotency keys (draft-ietf-httpapi-idempotency-key-header): one answer for one request, however often.

The answer is kept in the transaction of the write it answers, so there is never one without the other. An
answer that carries a secret is sealed with a key made from the caller's own token, which is nowhere kept.
"""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec

from tradepost.access.caller import Caller
from tradepost.clock import instant
from tradepost.problems import IdempotencyKeyReused, KeyInUse, Malformed
from tradepost.storage.database import Writing
from tradepost.storage.statements import idempotency_keys

KEPT_MS = 24 * 3600 * 1000
_MAX_LENGTH = 255
_SEALED = "sealed:"


class Answer(msgspec.Struct, frozen=True):
    """An answer, as it is given and can be given again. `secret` ones are sealed when kept."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    secret: bool = False


def parse_key(header: bytes) -> str:
    """A key, bare or as a quoted string; raises `Malformed`."""
    text = header.decode("latin-1").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if not 1 <= len(text) <= _MAX_LENGTH or not text.isprintable():
        message = f"Idempotency-Key has to be 1 to {_MAX_LENGTH} printable characters"
        raise Malformed(message)
    return text


def fingerprint(parts: Iterable[bytes]) -> str:
    """What makes a request the same: its method, address and body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


@dataclass
class Once:
    """A request that is to happen once, under its key."""

    caller: Caller
    key: str
    fingerprint: str
    now: int
    _running: ClassVar[set[tuple[str, str]]] = set()

    def __enter__(self) -> Self:
        if (self.caller.key_id, self.key) in self._running:
            message = "A request with this Idempotency-Key is still running"
            raise KeyInUse(message)
        self._running.add((self.caller.key_id, self.key))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.discard((self.caller.key_id, self.key))

    async def claim(self, tx: Writing) -> Answer | None:
        """Claims the key: None if it was free, else the answer it was given then."""
        claimed = await tx.row(
            idempotency_keys.CLAIM,
            api_key_id=self.caller.key_id,
            key=self.key,
            fingerprint=self.fingerprint,
            expires_at=instant(self.now + KEPT_MS),
            now=instant(self.now),
        )
        if claimed is not None:
            return None
        found = await tx.row(idempotency_keys.FIND, api_key_id=self.caller.key_id, key=self.key)
        if found is None or found[1] is None:
            message = "A request with this Idempotency-Key is still running"
            raise KeyInUse(message)
        if found[0] != self.fingerprint:
            message = "This Idempotency-Key was used with another request; use a new one"
            raise IdempotencyKeyReused(message)
        return msgspec.json.decode(self._open(found[1]), type=Answer)

    async def keep(self, tx: Writing, answer: Answer) -> None:
        """Keeps the answer under the key."""
        text = msgspec.json.encode(answer).decode()
        await tx.run(
            idempotency_keys.ANSWER,
            at_api_key_id=self.caller.key_id,
            at_key=self.key,
            new_answer=self._seal(text) if answer.secret else text,
        )

    def _seal(self, text: str) -> str:
        sealed: bytes = self._fernet().encrypt(text.encode())
        return _SEALED + sealed.decode()

    def _open(self, kept: str) -> str:
        if not kept.startswith(_SEALED):
            return kept
        opened: bytes = self._fernet().decrypt(kept.removeprefix(_SEALED).encode())
        return opened.decode()

    def _fernet(self) -> Any:
        from cryptography.fernet import Fernet  # noqa: PLC0415 (few requests need it)

        return Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"idempotency\0" + self.caller.token).digest()))
