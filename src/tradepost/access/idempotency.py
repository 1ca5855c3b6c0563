"""Idempotency keys (draft-ietf-httpapi-idempotency-key-header): a repeated request gets the first result.

The result is stored in the transaction of its write, so there is never one without the other. A result with a
secret is encrypted with a key derived from the caller's own token, which is never stored.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from tradepost.access.caller import Caller
from tradepost.clock import instant
from tradepost.problems import IdempotencyKeyReused, KeyInUse, Malformed
from tradepost.storage.database import Writing
from tradepost.storage.statements import idempotency_keys

STORED_MS = 24 * 3600 * 1000
_MAX_LENGTH = 255
_SEALED = "sealed:"

T = TypeVar("T")


class Codec(NamedTuple, Generic[T]):
    """How the result of an action is stored: as JSON, encrypted if it `is_secret`."""

    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    is_secret: Callable[[T], bool]


def parse_key(header: bytes) -> str:
    """The key in a header field, bare or as a quoted string. Raises `Malformed` if it is not one."""
    text = header.decode("latin-1").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if not 1 <= len(text) <= _MAX_LENGTH or not text.isprintable():
        message = f"Idempotency-Key must be 1 to {_MAX_LENGTH} printable characters"
        raise Malformed(message)
    return text


def fingerprint(parts: Iterable[bytes]) -> str:
    """The SHA-256 of the parts that identify a request: its method, address and body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


class Stored(NamedTuple, Generic[T]):
    """A result that was stored; it may be None."""

    result: T


@dataclass
class IdempotentRequest(Generic[T]):
    """A request that takes effect once for its key. Entering it raises `KeyInUse` while another one runs."""

    caller: Caller
    key: str
    fingerprint: str
    codec: Codec[T]
    now_ms: int
    _running: ClassVar[set[tuple[str, str]]] = set()

    def __enter__(self) -> Self:
        if (self.caller.key_id, self.key) in self._running:
            raise _running()
        self._running.add((self.caller.key_id, self.key))
        return self

    def __exit__(self, *_: object) -> None:
        self._running.discard((self.caller.key_id, self.key))

    async def reserve(self, tx: Writing) -> Stored[T] | None:
        """Reserves the key. Returns the stored result if the key was used before, otherwise None.

        Raises `KeyInUse` while the first request is running, and `IdempotencyKeyReused` if the key was used
        with a different request.
        """
        reserved = await tx.row(
            idempotency_keys.RESERVE,
            api_key_id=self.caller.key_id,
            key=self.key,
            fingerprint=self.fingerprint,
            expires_at=instant(self.now_ms + STORED_MS),
            now=instant(self.now_ms),
        )
        if reserved is not None:
            return None
        row = await tx.row(idempotency_keys.FIND, api_key_id=self.caller.key_id, key=self.key)
        fingerprint, stored = row or (None, None)
        if stored is None:
            raise _running()
        if fingerprint != self.fingerprint:
            message = "This Idempotency-Key was used with another request; use a new one"
            raise IdempotencyKeyReused(message)
        return Stored(self.codec.decode(self._open(stored)))

    async def store(self, tx: Writing, result: T) -> None:
        """Stores the result for the key, encrypted if it is secret."""
        text = self.codec.encode(result)
        await tx.run(
            idempotency_keys.STORE,
            at_api_key_id=self.caller.key_id,
            at_key=self.key,
            new_answer=self._seal(text) if self.codec.is_secret(result) else text.decode(),
        )

    def _seal(self, text: bytes) -> str:
        sealed: bytes = self._fernet().encrypt(text)
        return _SEALED + sealed.decode()

    def _open(self, stored: str) -> bytes:
        if not stored.startswith(_SEALED):
            return stored.encode()
        opened: bytes = self._fernet().decrypt(stored.removeprefix(_SEALED).encode())
        return opened

    def _fernet(self) -> Any:
        from cryptography.fernet import Fernet  # noqa: PLC0415 (few requests need it)

        return Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"idempotency\0" + self.caller.token).digest()))


def _running() -> KeyInUse:
    return KeyInUse("A request with this Idempotency-Key is still running")
