"""The allowlist: documents in files, beside which no others are answered.

Each file is read at the start. What is allowed is the whole document, and each of its operations with the
fragments it needs; spaces, commas and comments make no difference.
"""

import hashlib
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Self

from graphql import GraphQLSyntaxError, parse, print_ast, separate_operations, strip_ignored_characters

from tradepost.graphql.documents import Document, Documents
from tradepost.graphql.errors import (
    DOCUMENT_TOO_LARGE,
    PERSISTED_QUERY_NOT_ALLOWED,
    Refused,
    refusal,
    syntax_error,
)
from tradepost.settings import BadSetting

_SUFFIX = ".graphql"


class Allowlist:
    """What may be asked: by the SHA-256 of a text, and by what a text is without ignored characters."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._allowed: dict[str, Document] = {}

    @classmethod
    def load(cls, path: Path, documents: Documents) -> Self:
        """The documents of a file, or of all files in a folder; raises `BadSetting` naming a bad one."""
        found = cls(documents)
        files = sorted(path.rglob(f"*{_SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise _bad(path, f"holds no {_SUFFIX} files")
        for file in files:
            try:
                found.allow(file.read_text("utf-8"))
            except Refused as refused:
                raise _bad(file, _said(refused)) from None
            except GraphQLSyntaxError as error:
                raise _bad(file, _said(syntax_error(error))) from None
            except (OSError, UnicodeDecodeError) as error:
                raise _bad(file, str(error)) from None
        return found

    def allow(self, text: str) -> None:
        """Allows a text and each of its operations; raises `Refused` if one is not valid."""
        parts = [print_ast(part) for part in separate_operations(parse(text)).values()]
        try:
            self._allow(text)
        except Refused as refused:
            # A file may hold more operations than a request may, as long as each of them is within limits.
            if len(parts) <= 1 or refused.errors[0]["extensions"]["code"] != DOCUMENT_TOO_LARGE:
                raise
        for part in parts:
            self._allow(part)

    def documents(self) -> Iterable[Document]:
        """All that are allowed."""
        return {id(each): each for each in self._allowed.values()}.values()

    def document(self, hash_: str | None, text: str | None) -> Document:
        """The document of a hash or a text; raises `Refused` if it is not on the list."""
        found = self._allowed.get(_hash(text) if text is not None else hash_ or "")
        if found is not None and text in (None, found.text):
            return found
        if text is not None and self._stripped(text) in self._allowed:
            return self._documents.get(text)
        message = "Only the documents on the allowlist of this service are answered"
        raise refusal(PERSISTED_QUERY_NOT_ALLOWED, message, status=HTTPStatus.FORBIDDEN)

    def _allow(self, text: str) -> None:
        document = self._documents.get(text)
        for spelled in (text, text.strip(), strip_ignored_characters(text)):
            self._allowed[_hash(spelled)] = document

    def _stripped(self, text: str) -> str:
        self._documents.limits.check_size(text)
        try:
            return _hash(strip_ignored_characters(text))
        except GraphQLSyntaxError:
            return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _said(refused: Refused) -> str:
    """The first thing that is wrong, on one line."""
    error = refused.errors[0]
    at = "".join(f" (line {each['line']})" for each in error.get("locations", [])[:1])
    return " ".join(error["message"].split()) + at


def _bad(path: Path, what: str) -> BadSetting:
    return BadSetting(f"TRADEPOST_GRAPHQL_ALLOWLIST: {path}: {what}")
