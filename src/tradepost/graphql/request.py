"""A GraphQL request (GraphQL over HTTP, 5.1): `query`, `operationName`, `variables` and `extensions`.

It is read from a body, from the parameters of a GET or from a message on a socket. Unknown members are
ignored, as the standard requires.
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


class GraphQLRequest(Struct, frozen=True, rename="camel"):
    """One request. Members that it lacks are None, but it has a query, the hash of one, or both."""

    query: str | None = None
    operation_name: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> "GraphQLRequest":
        """The request of a JSON object; raises `Malformed`, which names every member that cannot be used."""
        try:
            request = msgspec.convert(members, GraphQLRequest)
        except msgspec.ValidationError:
            raise _malformed(members) from None
        if _has_nul(request.variables):
            raise _wrong(("variables",), "must not contain a NUL character")
        return _complete(request)

    @classmethod
    def from_body(cls, body: bytes) -> "GraphQLRequest":
        """The request of a POST's body; raises `Malformed` unless it is a JSON object with usable members."""
        if body.count(b"{") + body.count(b"[") < _SAFE_BRACKETS and _NUL not in body:
            try:
                return _complete(_decode(body))
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # what is wrong is named below
        return cls.of(parse_object(body))

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, str]) -> "GraphQLRequest":
        """The request of a GET's query parameters, where `variables` and `extensions` are JSON.

        Raises `Malformed`.
        """
        return cls.of(
            {
                "query": parameters.get("query"),
                "operationName": parameters.get("operationName"),
                "variables": _json(parameters, "variables"),
                "extensions": _json(parameters, "extensions"),
            }
        )

    @property
    def hash(self) -> str | None:
        """The SHA-256 of a persisted query, hexadecimal in lower case, or None; raises `Malformed`."""
        persisted = self.extensions.get("persistedQuery") if self.extensions else None
        if persisted is None:
            return None
        try:
            return msgspec.convert(persisted, _PersistedQuery).sha256_hash.lower()
        except msgspec.ValidationError:
            message = "must be {version: 1, sha256Hash: <64 hexadecimal digits>}"
            raise _wrong(("extensions", "persistedQuery"), message) from None


_decode = msgspec.json.Decoder(GraphQLRequest).decode


def _complete(request: GraphQLRequest) -> GraphQLRequest:
    if request.hash is None and request.query is None:
        message = "is required"
        raise Malformed(message, [MemberError(("query",), message, "required")])
    return request


def _malformed(members: Mapping[str, Any]) -> Malformed:
    errors = []
    for each in msgspec.structs.fields(GraphQLRequest):
        try:
            msgspec.convert(members.get(each.encode_name), each.type)
        except msgspec.ValidationError:
            kind = "a string" if each.type == str | None else "a JSON object"
            errors.append(MemberError((each.name,), f"must be {kind}", "type"))
    detail = errors[0].message if len(errors) == 1 else f"{len(errors)} members are not valid"
    return Malformed(detail, errors)


def _wrong(path: Path, message: str) -> Malformed:
    return Malformed(message, [MemberError(path, message, "invalid")])


def _json(parameters: Mapping[str, str], name: str) -> Any:
    text = parameters.get(name)
    if text is None or text in ("", "null"):
        return None
    try:
        return parse_object(text.encode())
    except Malformed:
        raise _wrong((name,), "must be a JSON object") from None


def _has_nul(value: Any) -> bool:
    """Whether a value contains a NUL, which no engine can store, and some refuse as a parameter."""
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(each) for each in value.values())
    return isinstance(value, list) and any(_has_nul(each) for each in value)
