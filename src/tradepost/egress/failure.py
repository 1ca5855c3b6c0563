"""Why there is no response, in words for the owner of the endpoint, none of which a receiver sent."""

import asyncio
import os
import socket
import ssl

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientResponseError,
    ServerDisconnectedError,
)
from aiohttp.http_exceptions import BadStatusLine, LineTooLong

from tradepost.egress.addresses import Blocked
from tradepost.egress.bounded_connection import ResponseTooLong


def failure(error: BaseException, seconds: float) -> str:
    """What went wrong with a request whose limit was so many seconds, such as `connection refused`."""
    if isinstance(error, ClientConnectorError):
        return _not_connected(error)
    if isinstance(error, asyncio.TimeoutError):
        return f"timed out after {seconds:g} s"
    if isinstance(error, ServerDisconnectedError):
        return "the connection was closed without an answer"
    if isinstance(error, ClientResponseError | ResponseTooLong):
        return f"the answer could not be read: {_unreadable(error)}"
    if isinstance(error, ClientOSError):
        return f"the connection was lost: {_system(error)}"
    return f"the request could not be made ({type(error).__name__})"


def _not_connected(error: ClientConnectorError) -> str:
    cause = error.__cause__
    if isinstance(cause, Blocked):
        return f"the address is not allowed: {cause.description}"
    if isinstance(cause, socket.gaierror):
        return "the name does not resolve"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"TLS failed: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {(cause.reason or 'the handshake was broken off').replace('_', ' ').lower()}"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    return f"no connection: {_system(error)}"


def _system(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else "it was broken off"


def _unreadable(error: ClientError) -> str:
    cause = error.__cause__ and error.__cause__.__cause__
    if isinstance(error, ResponseTooLong):
        return "it does not end"
    if isinstance(cause, BadStatusLine):
        return "it is not HTTP"
    if isinstance(cause, LineTooLong):
        return "a field of its head is too long"
    return "its head is malformed or too long"
