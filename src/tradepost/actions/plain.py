"""What can be done with any record: create, replace, delete. PATCH is a replacement by the merged record."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from tradepost.actions.change import Change, Means, Rows
from tradepost.clock import instant, parse_instant
from tradepost.domain.input import Values
from tradepost.domain.record import Mark, Record, members, parents
from tradepost.problems import Invalid, MemberError, Problem
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.tables import folded

Refusals = Mapping[str, tuple[type[Problem], ...]]  # by method


class Plain:
    """The actions of a record without rules of its own. With `emits` each change is announced.

    `refuses` says which problems the rules add to those that any record can meet; `reveals` which
    secrets stand beside a record in the answer that made it, and what each is.
    """

    refuses: ClassVar[Refusals] = {}
    reveals: ClassVar[Mapping[str, str]] = {}

    def __init__(self, record: type[Record], *, emits: bool = False) -> None:
        self.record = record
        self.statements = plain(record)
        self.emits = emits
        self._folded = [each.name for each in members(record) if Mark.UNIQUE_FOLDED in each.marks]
        written = [each for each in members(record) if not each.read_only]
        self._documents = [each.name for each in written if Mark.JSON in each.marks]
        self._instants = [each.name for each in written if each.is_instant]

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events these actions announce."""
        return (
            tuple(f"{self.record.kind}.{verb}" for verb in ("created", "updated", "deleted"))
            if self.emits
            else ()
        )

    async def prepare(self, means: Means, body: bytes, names: Mapping[str, str]) -> None:
        """Nothing: what a body says needs no look outside."""

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        """What of `values` breaks a rule, as far as they could be read; `current` is what they replace."""
        del current
        unknown = [
            MemberError((key.name,), f"names no {link.parent.kind}", "unknown")
            for key, link in parents(self.record)
            if values.get(key.name) is not None
            and await change.tx.row(plain(link.parent).exists, id=values[key.name]) is None
        ]
        return [*unknown, *self._not_instants(values)]

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds a record. Raises `Invalid` if a parent it names is not there."""
        await self._refuse(change, values, None)
        new_id = change.new_id()
        dates = {"created_at": change.now, "updated_at": change.now}
        given = self.kept(values) | dates
        own = {name: value for name, value in given.items() if name in self.statements.table.c}
        row = await change.add(self.record, {"id": new_id, **own, **self._derived(values)})
        self.announce(change, "created", row, row)
        return [row]

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Makes the record say `values`; one that says so already stays as it is, version and all."""
        await self._refuse(change, values, current)
        names = self.statements.names
        before = dict(zip(names, current, strict=True))
        after = before | {name: value for name, value in self.kept(values).items() if name in before}
        if after == before:
            return [current]
        after |= {"version": before["version"] + 1, "updated_at": change.now}
        new = {f"new_{name}": value for name, value in (after | self._derived(after)).items()}
        await change.tx.run(self.statements.update, at_id=before["id"], **new)
        row = tuple(after[name] for name in names)
        self.announce(change, "updated", current, row)
        return [row]

    async def delete(self, change: Change, current: Row) -> None:
        """Removes the record, or hides it where the record says so."""
        await change.tx.run(self.statements.delete, id=current[0], now=change.now)
        self.announce(change, "deleted", current, current)

    def announce(self, change: Change, verb: str, before: Row, after: Row) -> None:
        """Announces a change; a record with rules of its own may say more."""
        del before
        if self.emits:
            change.announce(f"{self.record.kind}.{verb}", self.record.plural, after[0])

    def kept(self, values: Values) -> Values:
        """The values as columns hold them: documents as JSON text, instants in the service's own form."""
        kept = dict(values)
        for name in self._documents:
            if kept.get(name) is not None:
                kept[name] = msgspec.json.encode(kept[name]).decode()
        for name in self._instants:
            if kept.get(name) is not None:
                kept[name] = instant(parse_instant(kept[name]))
        return kept

    def _not_instants(self, values: Values) -> Iterator[MemberError]:
        for name in self._instants:
            if values.get(name) is not None:
                try:
                    parse_instant(values[name])
                except ValueError as error:
                    yield MemberError((name,), str(error), "invalid")

    def _derived(self, values: Values) -> dict[str, Any]:
        return {f"{name}_key": values[name].casefold() for name in self._folded}

    async def _refuse(self, change: Change, values: Values, current: Row | None) -> None:
        errors = await self.judge(change, values, current)
        if errors:
            raise Invalid.of(errors)


def column_of(record: type[Record], column: str) -> str:
    """The member behind a column that keeps it case-folded."""
    return next((each.name for each in members(record) if folded(each) == column), column)
