"""Changes: the fields of Mutation, by the same actions as REST, each in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tradepost.access.caller import Caller
from tradepost.actions.change import Change
from tradepost.actions.holding import held
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.record import Record
from tradepost.graphql.field import Args
from tradepost.http import conditional
from tradepost.problems import Invalid, Malformed, NotFound, invalid
from tradepost.resource import Actions, Resource
from tradepost.storage.database import Row
from tradepost.storage.plain import plain


class Act(Protocol):
    """What stands behind a field of Mutation."""

    @property
    def record(self) -> type[Record]:
        """What it returns one of."""

    def admit(self, caller: Caller) -> None:
        """Raises `Forbidden` unless the caller may."""

    async def act(self, change: Change, args: Args) -> Row:
        """Does it within a transaction; the record's row as it is then."""


@dataclass(frozen=True)
class _Act:
    resource: Resource

    @property
    def record(self) -> type[Record]:
        return self.resource.record

    @property
    def actions(self) -> Actions:
        if self.resource.actions is None:
            raise AssertionError(self.resource)
        return self.resource.actions

    def admit(self, caller: Caller) -> None:
        caller.require(self.resource.write_scope)
        if caller.user_id is not None and not self.resource.is_open_to_user_keys(self.method):
            caller.forbid_user_keys()

    @property
    def method(self) -> str:
        """The method of REST that does the same."""
        return "PATCH"

    @cached_property
    def input(self) -> Input:
        return Input(self.record, names_of(self.record))

    async def judged(self, change: Change, given: Mapping[str, Any], current: Row | None) -> Values:
        """The values of an input; if it is not valid, with whatever the rules say of the rest of it."""
        said = {name: value for name, value in given.items() if value is not None}
        try:
            return self.input.check(said)
        except Invalid as invalid:
            known: Any = invalid.facts["values"]
            more = await self.actions.judge(change, known, current)
            raise Invalid.of([*invalid.errors, *more]) from None

    async def found(self, change: Change, args: Args) -> Row:
        """The row that `id` names, held, and as `ifMatch` wants it."""
        owner = change.caller.user_id if self.resource.user_keys == "own" else None
        row = await held(change, self.record, args["id"], owner)
        if row is None:
            message = f"There is no {self.record.kind.replace('_', ' ')} {args['id']}"
            raise NotFound(message)
        if args.get("ifMatch") is not None:
            _check_match(args["ifMatch"], row)
        return row

    def row(self, rows: list[Row]) -> Row:
        """The record's own row of what an action returns."""
        return rows[0][: len(plain(self.record).names)]


class Create(_Act):
    """Adds a record: `input`."""

    @property
    def method(self) -> str:
        return "POST"

    async def act(self, change: Change, args: Args) -> Row:
        values = await self.judged(change, args["input"], None)
        return self.row(await self.actions.create(change, values))


class Update(_Act):
    """Changes the members that are given, null meaning their defaults: `id`, `input`, `ifMatch`."""

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.found(change, args)
        said = self.input.said(dict(zip(plain(self.record).names, current, strict=True)))
        values = await self.judged(change, said | args["input"], current)
        return self.row(await self.actions.replace(change, current, values))


class Delete(_Act):
    """Removes a record, which it returns as it was: `id`, `ifMatch`."""

    @property
    def method(self) -> str:
        return "DELETE"

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.found(change, args)
        await self.actions.delete(change, current)
        return current


@dataclass(frozen=True)
class Move(_Act):
    """Moves a record to a state: `id`, `ifMatch`."""

    status: str

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.found(change, args)
        values = dict(zip(plain(self.record).names, current, strict=True)) | {"status": self.status}
        return self.row(await self.actions.replace(change, current, values))


def _check_match(given: str, row: Row) -> None:
    try:
        conditional.check_match(given.encode(), tag(row[-1]).encode())
    except Malformed:
        message = f"has to be an etag such as {tag(7)}, its quotes included"
        raise invalid(("ifMatch",), message, "invalid") from None


def tag(version: int) -> str:
    """An item's ETag: what names its state in REST too, and no representation that REST knows."""
    return f'"{version}.graphql"'
