"""The allowlist: documents in files; no others are answered.

The files are read at the start. Each allows its whole document, and each of its operations with the fragments
that it needs; spaces, commas and comments make no difference.
"""

import hashlib
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Self

from graphql import GraphQLSyntaxError, parse, print_ast, separate_operations, strip_ignored_characters

from tradepost.graphql.documents import DocumentCache, ValidDocument
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
    """The allowed documents, by the SHA-256 of a text, and of a text without ignored characters."""

    def __init__(self, documents: DocumentCache) -> None:
        self._documents = documents
        self._allowed: dict[str, ValidDocument] = {}

    @classmethod
    def load(cls, path: Path, documents: DocumentCache) -> Self:
        """The documents of a file, or of all files in a folder; raises `BadSetting`, naming a bad one."""
        allowlist = cls(documents)
        files = sorted(path.rglob(f"*{_SUFFIX}")) if path.is_dir() else [path]
        if not files:
            raise _bad(path, f"holds no {_SUFFIX} files")
        for file in files:
            try:
                allowlist.allow(file.read_text("utf-8"))
            except Refused as refused:
                raise _bad(file, _first_error(refused)) from None
            except GraphQLSyntaxError as error:
                raise _bad(file, _first_error(syntax_error(error))) from None
            except (OSError, UnicodeDecodeError) as error:
                raise _bad(file, str(error)) from None
        return allowlist

    def allow(self, text: str) -> None:
        """Allows a text and each of its operations.

        Raises `Refused` if one is not valid, and `GraphQLSyntaxError` if the text cannot be parsed.
        """
        parts = [print_ast(part) for part in separate_operations(parse(text)).values()]
        try:
            self._allow(text)
        except Refused as refused:
            # A file may have more operations than a request, as long as each of them is within the limits.
            if len(parts) <= 1 or refused.errors[0]["extensions"]["code"] != DOCUMENT_TOO_LARGE:
                raise
        for part in parts:
            self._allow(part)

    def documents(self) -> Iterable[ValidDocument]:
        """All allowed documents."""
        return {id(each): each for each in self._allowed.values()}.values()

    def document(self, hash_: str | None, text: str | None) -> ValidDocument:
        """The document of a hash or a text; raises `Refused` if it is not on the list."""
        document = self._allowed.get(_hash(text) if text is not None else hash_ or "")
        if document is not None and text in (None, document.text):
            return document
        if text is not None and self._stripped(text) in self._allowed:
            return self._documents.get(text)
        message = "Only the documents on the allowlist of this service are answered"
        raise refusal(PERSISTED_QUERY_NOT_ALLOWED, message, status=HTTPStatus.FORBIDDEN)

    def _allow(self, text: str) -> None:
        document = self._documents.get(text)
        for spelling in (text, text.strip(), strip_ignored_characters(text)):
            self._allowed[_hash(spelling)] = document

    def _stripped(self, text: str) -> str:
        self._documents.limits.check_size(text)
        try:
            return _hash(strip_ignored_characters(text))
        except GraphQLSyntaxError:
            return ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _first_error(refused: Refused) -> str:
    """The first error, on one line."""
    error = refused.errors[0]
    at = "".join(f" (line {each['line']})" for each in error.get("locations", [])[:1])
    return " ".join(error["message"].split()) + at


def _bad(path: Path, what: str) -> BadSetting:
    return BadSetting(f"TRADEPOST_GRAPHQL_ALLOWLIST: {path}: {what}")
