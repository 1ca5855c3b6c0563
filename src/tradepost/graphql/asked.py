"""What a request asks (GraphQL over HTTP, 5.1): `query`, `operationName`, `variables` and `extensions`.

The same from a body, from the parameters of a GET and from a message on a socket. Members that are not known
are ignored, as the standard wants it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tradepost.domain.input import parse_object
from tradepost.problems import Malformed, MemberError, Path

_NUL = b"\\u0000"
_SAFE_BRACKETS = 64  # fewer cannot nest too deeply, whatever they say


class _PersistedQuery(Struct, rename="camel"):
    version: Literal[1]
    sha256_hash: Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}\Z")]


class Asked(Struct, frozen=True, rename="camel"):
    """One request. What was not given is None, but it has a query, the hash of one, or both."""

    query: str | None = None
    operation_name: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Asked":
        """A JSON object that was read already; `Malformed` names every member that cannot be used."""
        try:
            asked = msgspec.convert(given, Asked)
        except msgspec.ValidationError:
            raise _malformed(given) from None
        if _has_nul(asked.variables):
            raise _wrong(("variables",), "contains a NUL character; remove it")
        return _complete(asked)

    @classmethod
    def from_body(cls, body: bytes) -> "Asked":
        """The body of a POST; `Malformed` unless it is a JSON object whose members can be used."""
        if body.count(b"{") + body.count(b"[") < _SAFE_BRACKETS and _NUL not in body:
            try:
                return _complete(_decode(body))
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # what is wrong is found out below
        return cls.of(parse_object(body))

    @classmethod
    def from_parameters(cls, given: Mapping[str, str]) -> "Asked":
        """The query parameters of a GET; `variables` and `extensions` are JSON in them."""
        return cls.of(
            {
                "query": given.get("query"),
                "operationName": given.get("operationName"),
                "variables": _json(given, "variables"),
                "extensions": _json(given, "extensions"),
            }
        )

    @property
    def hash(self) -> str | None:
        """The SHA-256 of a persisted query, in lower case."""
        given = self.extensions.get("persistedQuery") if self.extensions else None
        if given is None:
            return None
        try:
            return msgspec.convert(given, _PersistedQuery).sha256_hash.lower()
        except msgspec.ValidationError:
            message = "has to be {version: 1, sha256Hash: <64 hexadecimal digits>}"
            raise _wrong(("extensions", "persistedQuery"), message) from None


_decode = msgspec.json.Decoder(Asked).decode


def _complete(asked: Asked) -> Asked:
    if asked.hash is None and asked.query is None:
        message = "is required"
        raise Malformed(message, [MemberError(("query",), message, "required")])
    return asked


def _malformed(given: Mapping[str, Any]) -> Malformed:
    errors = []
    for each in msgspec.structs.fields(Asked):
        try:
            msgspec.convert(given.get(each.encode_name), each.type)
        except msgspec.ValidationError:
            kind = "a string" if each.type == str | None else "a JSON object"
            errors.append(MemberError((each.name,), f"has to be {kind}", "type"))
    detail = errors[0].message if len(errors) == 1 else f"{len(errors)} members are not valid"
    return Malformed(detail, errors)


def _wrong(path: Path, message: str) -> Malformed:
    return Malformed(message, [MemberError(path, message, "invalid")])


def _json(given: Mapping[str, str], name: str) -> Any:
    text = given.get(name)
    if text is None or text in ("", "null"):
        return None
    try:
        return parse_object(text.encode())
    except Malformed:
        raise _wrong((name,), "has to be a JSON object") from None


def _has_nul(value: Any) -> bool:
    """No engine keeps a NUL; some refuse to be asked about one."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(each) for each in value.values())
    return isinstance(value, list) and any(_has_nul(each) for each in value)
