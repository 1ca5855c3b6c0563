"""Importing addresses: identified by their ids, or otherwise by the same content for the same user."""

from collections.abc import Sequence
from typing import Any

from tradepost.actions.change import Change
from tradepost.domain.address import Address
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.record import members
from tradepost.domain.user import User
from tradepost.problems import Invalid, MemberError
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.statements import identities
from tradepost.transfer import lookup
from tradepost.transfer.file_entity import RowShape
from tradepost.transfer.kind import Entry, ImportOutcome
from tradepost.transfer.owners import Owners, owners
from tradepost.transfer.row import AddressRow, born, user_errors

_CONTENT = ("user_id", *(each.name for each in members(Address) if not each.read_only))


class AddressKind:
    """The import of addresses."""

    record = Address
    shape = RowShape(AddressRow)

    def __init__(self) -> None:
        self.input = Input(AddressRow, names_of(AddressRow))

    def entry(self, values: Values, now_ms: int) -> Entry:
        errors = list(user_errors(values))
        if errors:
            raise Invalid.of(errors)
        return Entry(values, born(values, now_ms))

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[ImportOutcome]:
        users = await owners(change, [entry.values for entry in entries])
        taken = await lookup.ids(change, Address, [entry.values["id"] for entry in entries])
        contents = await _contents(change, users)
        outcomes: list[ImportOutcome] = []
        rows = []
        for entry in entries:
            errors: list[MemberError] = []
            row = _row(change, entry, users.of(entry.values, errors))
            if errors:
                outcomes.append(errors)
            elif row["id"] in taken or (entry.values["id"] is None and _content(row) in contents):
                outcomes.append("there")
            else:
                taken.add(row["id"])
                contents.add(_content(row))
                rows.append(row)
                outcomes.append("added")
        if rows:
            await change.tx.many(plain(Address).insert, rows)
        for user_id in dict.fromkeys(row["user_id"] for row in rows):
            change.announce("user.updated", User.plural, user_id)
        return outcomes


async def _contents(change: Change, users: Owners) -> set[tuple[str | None, ...]]:
    """The contents of the addresses that these users already have."""
    wanted = [*users.ids, *users.by_email.values()]
    return {_content_of(row) for row in await lookup.rows(change, identities.ADDRESSES_OF, "ids", wanted)}


def _content_of(row: Row) -> tuple[str | None, ...]:
    return _content(dict(zip(plain(Address).names, row, strict=True)))


def _content(row: dict[str, Any]) -> tuple[str | None, ...]:
    return tuple(row[name] for name in _CONTENT)


def _row(change: Change, entry: Entry, user_id: str) -> dict[str, Any]:
    values, at = entry.values, entry.born
    return {
        **{name: values.get(name) for name in plain(Address).names},
        "id": values["id"] or change.new_id(at.ms),
        "user_id": user_id,
        "created_at": at.text,
        "updated_at": at.text,
        "version": 1,
    }
