"""`graphql-transport-ws`: its messages and the ways in which it ends a socket.

https://github.com/enisdenj/graphql-ws/blob/master/PROTOCOL.md defines the messages. Close codes that it
leaves open are those of its reference server.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tradepost.graphql.errors import Error, refused
from tradepost.graphql.request import GraphQLRequest
from tradepost.problems import Malformed

SUBPROTOCOL = "graphql-transport-ws"

GONE = 1005
TRY_AGAIN_LATER = 1013
BAD_REQUEST = 4400
UNAUTHORIZED = 4401
FORBIDDEN = 4403
SUBPROTOCOL_NOT_ACCEPTABLE = 4406
INITIALISATION_TIMEOUT = 4408
SUBSCRIBER_EXISTS = 4409
TOO_MANY_INITIALISATIONS = 4429
INTERNAL_ERROR = 4500

ACKNOWLEDGEMENT = b'{"type":"connection_ack"}'

_MAX_REASON_BYTES = 123  # the room in a close frame (RFC 6455, 5.5)

_encode = msgspec.json.Encoder().encode


class Closing(Exception):
    """Ends a socket with a close code and a reason.

    No close frame is sent to a client that has gone (`notify` is False) or that does not read (`dropped`).
    """

    def __init__(self, code: int, reason: str = "", *, notify: bool = True, dropped: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
        self.notify = notify and not dropped
        self.dropped = dropped


_Id = Annotated[str, Meta(min_length=1, max_length=128)]
_Payload = dict[str, Any] | None


class ConnectionInit(Struct, tag_field="type", tag="connection_init"):
    payload: _Payload = None


class Ping(Struct, tag_field="type", tag="ping"):
    payload: _Payload = None


class Pong(Struct, tag_field="type", tag="pong"):
    payload: _Payload = None


class Subscribe(Struct, tag_field="type", tag="subscribe"):
    id: _Id
    payload: dict[str, Any]

    def request(self) -> GraphQLRequest:
        """The operation to run.

        Raises `Closing` for a payload that breaks the protocol, and `Refused` for one that names nothing.
        """
        try:
            return GraphQLRequest.of(self.payload)
        except Malformed as problem:
            if any(each.code == "type" for each in problem.errors):
                raise Closing(BAD_REQUEST, f"Invalid payload: {problem.detail}") from None
            raise refused(problem) from None


class Complete(Struct, tag_field="type", tag="complete"):
    id: _Id


ClientMessage = ConnectionInit | Ping | Pong | Subscribe | Complete
_decode = msgspec.json.Decoder(ClientMessage).decode


def message_of(event: Mapping[str, Any]) -> ClientMessage:
    """The client's message in an ASGI event; raises `Closing` if there is none."""
    if event["type"] == "websocket.disconnect":
        raise Closing(event.get("code") or GONE, notify=False)
    text = event.get("text")
    if text is None:
        raise Closing(BAD_REQUEST, "Messages are text, not binary")
    try:
        message: ClientMessage = _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Closing(BAD_REQUEST, f"Invalid message: {error}") from None
    return message


def pong(payload: Mapping[str, Any] | None) -> bytes:
    """The answer to a ping, with its payload if it has one."""
    return b'{"type":"pong"}' if payload is None else b'{"type":"pong","payload":%b}' % _encode(payload)


def next_result(id_: str, payload: bytes) -> tuple[bytes, bytes, bytes]:
    """A result of an operation, in parts, so that a large payload is not copied."""
    return b'{"id":%b,"type":"next","payload":' % _encode(id_), payload, b"}"


def errors(id_: str, errors: list[Error]) -> bytes:
    """The request error that ends an operation."""
    return b'{"id":%b,"type":"error","payload":%b}' % (_encode(id_), _encode(errors))


def completion(id_: str) -> bytes:
    """The end of an operation."""
    return b'{"id":%b,"type":"complete"}' % _encode(id_)
