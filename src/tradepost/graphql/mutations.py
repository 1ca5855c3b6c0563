"""The fields of Mutation, made by the same actions as in REST, each in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from tradepost.access.caller import Permission
from tradepost.actions.change import Change
from tradepost.actions.locking import locked
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.record import Record
from tradepost.graphql.field import Args
from tradepost.http import conditional
from tradepost.problems import Invalid, Malformed, NotFound, invalid
from tradepost.resource import Actions, Resource
from tradepost.storage.database import Row
from tradepost.storage.record_statements import statements_of


class Mutation(Protocol):
    """A field of Mutation: what it changes, and who may."""

    @property
    def record(self) -> type[Record]:
        """The record that it returns one of."""

    @property
    def permission(self) -> Permission:
        """The permission that its caller needs."""

    async def act(self, change: Change, args: Args) -> Row:
        """Makes the change in the transaction of `change`; returns the record's row after it.

        Raises `NotFound`, also for what belongs to another user than the caller's; `PreconditionFailed` if
        `ifMatch` names an older version; `Invalid` with all that is wrong with the input; and the problems of
        the record's own action.
        """


@dataclass(frozen=True)
class _RecordMutation:
    resource: Resource

    @property
    def record(self) -> type[Record]:
        return self.resource.record

    @property
    def actions(self) -> Actions:
        if self.resource.actions is None:
            raise AssertionError(self.resource)
        return self.resource.actions

    @property
    def permission(self) -> Permission:
        return self.resource.permissions[self.method]

    @property
    def method(self) -> str:
        """The method of REST that makes the same change."""
        return "PATCH"

    @cached_property
    def input(self) -> Input:
        return Input(self.record, names_of(self.record), patching=self.method == "PATCH")

    async def judged(self, change: Change, members: Mapping[str, Any], current: Record | None) -> Values:
        """The values of an input; raises `Invalid` with what the record and its rules say of all members."""
        try:
            return self.input.check({name: value for name, value in members.items() if value is not None})
        except Invalid as invalid:
            known: Any = invalid.facts["values"]
            more = await self.actions.judge(change, known, current)
            raise Invalid.of([*invalid.errors, *more]) from None

    async def locked(self, change: Change, args: Args) -> Record:
        """The item that `id` names, locked; raises `NotFound`, or `PreconditionFailed` as `ifMatch` says."""
        item = await locked(change, self.record, args["id"], self.permission.owner(change.caller))
        if item is None:
            message = f"There is no {self.record.kind.replace('_', ' ')} {args['id']}"
            raise NotFound(message)
        if args.get("ifMatch") is not None:
            _check_match(args["ifMatch"], item.version)
        return item

    def row(self, rows: list[Row]) -> Row:
        """The record's own row among the rows that an action returns."""
        return rows[0][: len(statements_of(self.record).names)]


class Create(_RecordMutation):
    """Adds a record. Arguments: `input`."""

    @property
    def method(self) -> str:
        return "POST"

    async def act(self, change: Change, args: Args) -> Row:
        values = await self.judged(change, args["input"], None)
        return self.row(await self.actions.create(change, values))


class Update(_RecordMutation):
    """Changes members of a record; null sets the default. Arguments: `id`, `input`, `ifMatch`."""

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.locked(change, args)
        values = await self.judged(change, self.input.body_of(current) | args["input"], current)
        return self.row(await self.actions.replace(change, current, values))


class Delete(_RecordMutation):
    """Removes a record and returns it as it was. Arguments: `id`, `ifMatch`."""

    @property
    def method(self) -> str:
        return "DELETE"

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.locked(change, args)
        await self.actions.delete(change, current)
        return statements_of(self.record).row(current)


@dataclass(frozen=True)
class Transition(_RecordMutation):
    """Sets the status of a record. Arguments: `id`, `ifMatch`."""

    status: str

    async def act(self, change: Change, args: Args) -> Row:
        current = await self.locked(change, args)
        return self.row(await self.actions.replace(change, current, {"status": self.status}))


def _check_match(etag: str, version: int) -> None:
    try:
        conditional.check_match(etag.encode(), tag(version).encode())
    except Malformed:
        message = f"must be an etag such as {tag(7)}, including its quotes"
        raise invalid(("ifMatch",), message, "invalid") from None


def tag(version: int) -> str:
    """An item's ETag: the row's version as in REST, with a representation that REST does not have."""
    return f'"{version}.graphql"'
