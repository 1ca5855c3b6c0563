"""Sealing: what has to be read again but nowhere stand in the clear is kept encrypted (Fernet).

The keys come from the settings: the first seals, all of them open, so that a key can be replaced. Where none
is set there is a file of ours with one, readable to its owner alone, made when it is first needed.
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
    """There is no key, or it is another one; the message is for the operator."""


class Sealer:
    """Seals and opens short texts."""

    def __init__(self, keys: tuple[str, ...], path: Path) -> None:
        self._keys = keys
        self._path = path

    def check(self, kept: Iterable[str] = ()) -> None:
        """Sees that there is a key and that it opens what is kept; else raises `Unavailable`, saying why."""
        try:
            _ = self._fernet
            for sealed in kept:
                self._opened(sealed)
        except _NoKey as error:
            raise Unavailable(str(error)) from None

    def seal(self, text: str) -> str:
        """Raises `Unavailable` if there is no key; why is in the log alone."""
        try:
            sealed: bytes = self._fernet.encrypt(text.encode())
        except _NoKey as error:
            raise _unavailable(error) from None
        return sealed.decode()

    def open(self, sealed: str) -> str:
        """The text again; raises `Unavailable` if it was sealed with another key."""
        try:
            return self._opened(sealed)
        except _NoKey as error:
            raise _unavailable(error) from None

    def _opened(self, sealed: str) -> str:
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 (services without webhooks need it not)

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

        keys = self._keys or (_kept(self._path),)
        try:
            return MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            message = f"{self._path} holds no key: bring back what was there, or set TRADEPOST_ENCRYPTION_KEY"
            raise _NoKey(message) from None


def _unavailable(error: _NoKey) -> Unavailable:
    _log.error("%s", error)
    return Unavailable("Secrets can be neither kept nor read at the moment")


def _kept(path: Path) -> str:
    """The key in a file; a new one if there is no such file."""
    try:
        if not path.exists():
            _make(path)
        if path.stat().st_mode & _OTHERS:
            _log.warning("%s is readable to others than its owner: chmod 600 it", path)
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"The key file {path} cannot be used ({error}); or set TRADEPOST_ENCRYPTION_KEY"
        raise _NoKey(message) from None


def _make(path: Path) -> None:
    """Whole or not at all: of processes that start together, one makes the key that all use."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        os.link(scratch, path)
    scratch.unlink()
