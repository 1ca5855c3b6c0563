"""A webhook endpoint that `tradepost listen` creates in a running service, and deletes when it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
from aiohttp import web
from msgspec import DecodeError, Struct
from msgspec.json import decode

_SERVICE_SECONDS = 10.0
_DELETED = (web.HTTPNoContent.status_code, web.HTTPNotFound.status_code)
_T = TypeVar("_T")


class RegistrationFailed(Exception):
    """The endpoint could not be created or deleted; the message is one line."""


class RegisteredEndpoint(Struct):
    """The members of the created endpoint that are used here."""

    id: str
    secret: str


class _MemberProblem(Struct):
    field: str
    message: str


class _ServiceProblem(Struct):
    """The members of a problem (RFC 9457) that are used here."""

    detail: str = "nothing that tradepost would say"
    errors: list[_MemberProblem] = []


class Registration:
    """A running service at `base_url`, and the types of events to register for."""

    def __init__(self, base_url: str, key: str, types: list[str]) -> None:
        self.base_url = base_url
        self._key = key
        self._types = types

    @asynccontextmanager
    async def endpoint(self, url: str) -> AsyncIterator[RegisteredEndpoint]:
        """Creates an endpoint and deletes it when the block ends; raises `RegistrationFailed`."""
        body = {"url": url, "eventTypes": self._types, "description": "tradepost listen"}
        async with aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._key}"},
            timeout=aiohttp.ClientTimeout(total=_SERVICE_SECONDS),
        ) as session:
            status, answer = await self._call(session, "POST", json=body)
            endpoint = _decoded(answer, RegisteredEndpoint)
            if status != web.HTTPCreated.status_code or endpoint is None:
                raise RegistrationFailed(self._refusal(status, answer))
            try:
                yield endpoint
            finally:
                await self._delete(session, endpoint.id)

    async def _delete(self, session: aiohttp.ClientSession, endpoint_id: str) -> None:
        try:
            status, answer = await self._call(session, "DELETE", f"/{endpoint_id}")
            failure = "" if status in _DELETED else self._refusal(status, answer)
        except RegistrationFailed as unreachable:
            failure = str(unreachable)
        if failure:
            message = f"endpoint {endpoint_id} was not deleted: {failure}"
            raise RegistrationFailed(message)

    async def _call(
        self, session: aiohttp.ClientSession, method: str, path: str = "", **options: Any
    ) -> tuple[int, bytes]:
        """The status and the body of the service's response; raises `RegistrationFailed` if there is none."""
        url = f"{self.base_url}/v1/webhook-endpoints{path}"
        try:
            async with session.request(method, url, allow_redirects=False, **options) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            message = f"no service answers at {self.base_url} ({str(error) or 'timed out'})"
            raise RegistrationFailed(message) from None

    def _refusal(self, status: int, body: bytes) -> str:
        """What the service's problem means to the user of the command."""
        problem = _decoded(body, _ServiceProblem) or _ServiceProblem()
        detail = "; ".join(f"{each.field} {each.message}" for each in problem.errors) or problem.detail
        if status == web.HTTPUnauthorized.status_code:
            return f"{self.base_url} does not accept the API key; set another with --key or TRADEPOST_KEY"
        if any(each.field == "url" for each in problem.errors):
            return f"the service must run with TRADEPOST_WEBHOOK_ALLOW_PRIVATE=1 ({detail})"
        return f"{self.base_url} answered {status}: {detail}"


def _decoded(body: bytes, kind: type[_T]) -> _T | None:
    try:
        return decode(body, type=kind)
    except DecodeError:
        return None
