"""Importing addresses: identified by their ids, or otherwise by the same content for the same user."""

from collections.abc import Sequence

from tradepost.actions.change import Change
from tradepost.domain.address import Address
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.record import members
from tradepost.domain.user import User
from tradepost.problems import Invalid, MemberError
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import identities
from tradepost.transfer import lookup
from tradepost.transfer.file_entity import RowShape
from tradepost.transfer.kind import Entry, ImportOutcome, item
from tradepost.transfer.owners import Owners, owners
from tradepost.transfer.row import AddressRow, born, user_errors

_CONTENT = ("user_id", *(each.name for each in members(Address) if not each.read_only))


class AddressKind:
    """The import of addresses."""

    record = Address
    shape = RowShape(AddressRow)

    def __init__(self) -> None:
        self.input = Input(AddressRow, names_of(AddressRow), patching=True)

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
        items: list[Address] = []
        for entry in entries:
            errors: list[MemberError] = []
            address = item(change, Address, entry, user_id=users.of(entry.values, errors))
            if errors:
                outcomes.append(errors)
            elif address.id in taken or (entry.values["id"] is None and _content(address) in contents):
                outcomes.append("there")
            else:
                taken.add(address.id)
                contents.add(_content(address))
                items.append(address)
                outcomes.append("added")
        await change.add_many(items)
        for user_id in dict.fromkeys(each.user_id for each in items):
            change.announce("user.updated", User.plural, user_id)
        return outcomes


async def _contents(change: Change, users: Owners) -> set[tuple[str | None, ...]]:
    """The contents of the addresses that these users already have."""
    wanted = [*users.ids, *users.by_email.values()]
    rows = await lookup.rows(change, identities.ADDRESSES_OF, "ids", wanted)
    return {_content(statements_of(Address).load(row)) for row in rows}


def _content(address: Address) -> tuple[str | None, ...]:
    return tuple(getattr(address, name) for name in _CONTENT)
