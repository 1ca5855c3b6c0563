"""A kind of entity that can be imported: how one is checked, and how a batch of them is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tradepost.actions.change import Change
from tradepost.domain.input import Input, Values
from tradepost.domain.record import Record
from tradepost.problems import MemberError
from tradepost.storage.record_statements import R, statements_of
from tradepost.transfer.file_entity import NO_ENTITY, FileEntity, RowShape
from tradepost.transfer.row import Born

# The outcome for an entity: added, already there, or rejected with errors.
ImportOutcome = Literal["added", "there"] | list[MemberError]


@dataclass(slots=True)
class Entry:
    """An entity whose members are valid by themselves; `entity` is what its file contains."""

    values: Values
    born: Born
    rows: int = 2  # in the database, including its event
    entity: FileEntity = NO_ENTITY


def item(change: Change, record: type[R], entry: Entry, **own: Any) -> R:
    """The item of an entry, as it was when it was created; `own` are values that it does not have itself."""
    at = entry.born
    return record(
        **(
            statements_of(record).stored(entry.values)
            | {"id": entry.values["id"] or change.new_id(at.ms), "created_at": at.text, "updated_at": at.text}
            | own
        )
    )


class Kind(Protocol):
    """The import of users, addresses, products or orders."""

    @property
    def record(self) -> type[Record]:
        """The record of its entities."""

    @property
    def shape(self) -> RowShape:
        """The shape of its rows."""

    @property
    def input(self) -> Input:
        """The checks of an entity's members."""

    def entry(self, values: Values, now_ms: int) -> Entry:
        """Checks the members against each other; raises `Invalid`."""

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[ImportOutcome]:
        """Writes the entries that are not there yet; returns the outcome for each."""
