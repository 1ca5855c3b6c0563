"""The actions of any record: create, replace and delete. PATCH is a replacement by the merged record."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic

import msgspec

from tradepost.actions.change import Change, Rows, Services
from tradepost.clock import parse_instant
from tradepost.domain.input import Values
from tradepost.domain.record import Dated, members, parents
from tradepost.problems import Invalid, MemberError, Problem
from tradepost.storage.record_statements import R, statements_of

Refusals = Mapping[str, tuple[type[Problem], ...]]  # by method


class StandardActions(Generic[R]):
    """The actions of a record without rules of its own. With `emits` each change is announced.

    `refuses` lists the problems that the rules of a record add to those of any record; `reveals` the secrets
    in the answer that created an item, with their descriptions.
    """

    refuses: ClassVar[Refusals] = {}
    reveals: ClassVar[Mapping[str, str]] = {}
    prepares: ClassVar[bool] = False

    def __init__(self, record: type[R], *, emits: bool = False) -> None:
        self.record = record
        self.statements = statements_of(record)
        self.emits = emits
        self._instants = [each.name for each in members(record) if each.is_instant and not each.read_only]

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events that these actions announce."""
        verbs = ("created", "updated", "deleted") if self.emits else ()
        return tuple(f"{self.record.kind}.{verb}" for verb in verbs)

    async def prepare(self, services: Services, body: bytes, names: Mapping[str, str]) -> None:
        """Nothing: these actions need no look outside."""

    async def judge(self, change: Change, values: Values, current: R | None) -> list[MemberError]:
        """The rules that `values` break, as far as they could be read; they replace those of `current`."""
        del current
        unknown = [
            MemberError((key.name,), f"must be the id of an existing {link.parent.kind}", "unknown")
            for key, link in parents(self.record)
            if values.get(key.name) is not None
            and await change.tx.row(statements_of(link.parent).exists, id=values[key.name]) is None
        ]
        return [*unknown, *self._instant_errors(values)]

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds an item; returns its row. Raises `Invalid` if `values` break a rule."""
        await self.check(change, values, None)
        at = change.now_at
        dates: Values = {"created_at": at, "updated_at": at} if issubclass(self.record, Dated) else {}
        item = self.record(id=change.new_id(), **self.statements.stored(values), **dates)
        row = await change.add(item)
        self.announce(change, "created", item, item)
        return [row]

    async def replace(self, change: Change, current: R, values: Values) -> Rows:
        """Sets the members of an item; returns its row. Members that are not in `values` stay.

        An item that has these values already keeps its version. Raises `Invalid` if they break a rule.
        """
        await self.check(change, values, current)
        item = msgspec.structs.replace(current, **self.statements.stored(values))
        if item != current:
            item = await change.update(item)
            self.announce(change, "updated", current, item)
        return [self.statements.row(item)]

    async def delete(self, change: Change, current: R) -> None:
        """Removes an item, or hides it where its record says so."""
        await change.remove(current)
        self.announce(change, "deleted", current, current)

    def announce(self, change: Change, verb: str, before: R, after: R) -> None:
        """Announces a change of an item; records with rules of their own may announce other events."""
        del before
        if self.emits:
            change.announce(f"{self.record.kind}.{verb}", self.record.plural, after.id)

    async def check(self, change: Change, values: Values, current: R | None) -> None:
        """Raises `Invalid` with all the rules that `values` break."""
        errors = await self.judge(change, values, current)
        if errors:
            raise Invalid.of(errors)

    def _instant_errors(self, values: Values) -> Iterator[MemberError]:
        for name in self._instants:
            if values.get(name) is not None:
                try:
                    parse_instant(values[name])
                except ValueError as error:
                    yield MemberError((name,), str(error), "invalid")
