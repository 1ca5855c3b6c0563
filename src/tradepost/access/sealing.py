"""Sealing: encryption (Fernet) of values that must be readable later but never stored in plain text.

The keys come from the settings: the first encrypts, all of them decrypt, so that keys can be replaced. If
none is set, one is generated on first use and stored in a file that only its owner can read.
"""

import base64
import logging
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from tradepost.problems import Unavailable

_log = logging.getLogger("tradepost.access")

_OTHERS = 0o077


class _NoKey(Exception):
    """There is no key, or it is the wrong one; the message is for the operator."""


class Sealer:
    """Encrypts and decrypts short texts."""

    def __init__(self, keys: tuple[str, ...], path: Path) -> None:
        self._keys = keys
        self._path = path

    def check(self, sealed_texts: Iterable[str] = ()) -> None:
        """Raises `Unavailable` with the reason unless there is a key that decrypts all these texts."""
        try:
            _ = self._fernet
            for sealed in sealed_texts:
                self._opened(sealed)
        except _NoKey as error:
            raise Unavailable(str(error)) from None

    def seal(self, text: str) -> str:
        """The encrypted text. Raises `Unavailable` if there is no key; only the log has the reason."""
        try:
            sealed: bytes = self._fernet.encrypt(text.encode())
        except _NoKey as error:
            raise _unavailable(error) from None
        return sealed.decode()

    def open(self, sealed: str) -> str:
        """The decrypted text. Raises `Unavailable` if it was sealed with another key."""
        try:
            return self._opened(sealed)
        except _NoKey as error:
            raise _unavailable(error) from None

    def _opened(self, sealed: str) -> str:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 (only webhooks need it)

        try:
            opened: bytes = self._fernet.decrypt(sealed.encode())
        except InvalidToken:
            origin = "TRADEPOST_ENCRYPTION_KEY" if self._keys else str(self._path)
            message = f"Secrets in the database were sealed with another key than that of {origin}"
            raise _NoKey(message) from None
        return opened.decode()

    @cached_property
    def _fernet(self) -> Any:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415

        keys = self._keys or (_file_key(self._path),)
        try:
            return MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            message = f"{self._path} holds no key: bring back what was there, or set TRADEPOST_ENCRYPTION_KEY"
            raise _NoKey(message) from None


def _unavailable(error: _NoKey) -> Unavailable:
    _log.error("%s", error)
    return Unavailable("Secrets can be neither kept nor read at the moment")


def _file_key(path: Path) -> str:
    """The key in a file, which is created with a new key if it does not exist."""
    try:
        if not path.exists():
            _make(path)
        if path.stat().st_mode & _OTHERS:
            _log.warning("%s can be read by users other than its owner: run chmod 600 on it", path)
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"The key file {path} cannot be used ({error}); or set TRADEPOST_ENCRYPTION_KEY"
        raise _NoKey(message) from None


def _make(path: Path) -> None:
    """Creates the file atomically, so that processes which start together all use the key of one of them."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        os.link(scratch, path)
    scratch.unlink()
