"""Asking: operations sent as clients send them, and their answers taken apart."""

import asyncio
import json
from typing import Any
from urllib.parse import urlencode

from tests.service import Reply, Service

PATH = "/graphql"
JSON = "application/json"
RESPONSE = "application/graphql-response+json"


class Answered:
    """An answer: what came over HTTP, and what is in it."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.status = reply.status
        self.headers = reply.headers
        self.body: dict[str, Any] = reply.json
        self.data: Any = self.body.get("data")
        self.errors: list[Any] = self.body.get("errors", [])
        self.cost: dict[str, int] = self.body["extensions"]["cost"]

    def __repr__(self) -> str:
        return f"{self.status} {self.body}"

    @property
    def codes(self) -> list[str]:
        return [error["extensions"]["code"] for error in self.errors]

    @property
    def fields(self) -> list[str]:
        """The members that the errors name."""
        return [each["field"] for error in self.errors for each in error["extensions"].get("errors", [])]

    @property
    def sound(self) -> Any:
        """The data of an answer without errors; fails the test if there are any."""
        assert self.status == 200, self
        assert not self.errors, self
        return self.data


def ask(service: Service, query: str, variables: Any = None, **headers: Any) -> Answered:
    """One operation by POST; headers as `Service.call` takes them, `key` among them."""
    return Answered(service.post(PATH, {"query": query, "variables": variables}, **headers))


def got(service: Service, query: str, variables: Any = None, **headers: Any) -> Any:
    """The data of an operation that meets no error."""
    return ask(service, query, variables, **headers).sound


def address(query: str, variables: Any = None, **parameters: str) -> str:
    """What a GET of a query is addressed to."""
    given = {"query": query, **parameters}
    if variables is not None:
        given["variables"] = json.dumps(variables)
    return f"{PATH}?{urlencode(given)}"


def together(service: Service, *asked: tuple[Any, ...], **headers: Any) -> list[Answered]:
    """Operations at once: each (query, variables), or (query, variables, key)."""

    async def one(query: str, variables: Any, key: str = "") -> Reply:
        return await service._call("POST", PATH, {"query": query, "variables": variables}, key, headers)

    async def all_() -> list[Reply]:
        return await asyncio.gather(*[one(*each) for each in asked])

    return [Answered(reply) for reply in service.run(all_())]


def codes_of(answers: list[Answered]) -> list[str]:
    """The codes of all errors of many answers."""
    return [code for each in answers for code in each.codes]
