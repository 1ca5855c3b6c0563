"""A kind of entity that files can hold: how one is judged, and how a batch of them is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tradepost.actions.change import Change
from tradepost.domain.input import Input, Values
from tradepost.domain.record import Record
from tradepost.problems import MemberError
from tradepost.transfer.given import NOTHING, Given, Shape
from tradepost.transfer.row import Born

# What became of an entity: added, there already, or what was wrong with it.
Outcome = Literal["added", "there"] | list[MemberError]


@dataclass(slots=True)
class Entry:
    """An entity whose members are fine by themselves, and what stood in the file if it is from one."""

    values: Values
    born: Born
    rows: int = 2  # that it takes in the database, its event included
    given: Given = NOTHING


class Kind(Protocol):
    """Users, products, orders: whatever can be imported."""

    @property
    def record(self) -> type[Record]:
        """What its entities are."""

    @property
    def shape(self) -> Shape:
        """What rows of a file say."""

    @property
    def input(self) -> Input:
        """How an entity's members are judged."""

    def entry(self, values: Values, now_ms: int) -> Entry:
        """Judges the members against one another; raises `Invalid`."""

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[Outcome]:
        """Writes the entries that are not there yet; what became of each."""
