"""An order: what a user ordered, at the prices of that moment, and how far it has come.

PENDING ──► FULFILLED
   └──────► CANCELLED        both are final
"""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradepost.domain.address import Address
from tradepost.domain.record import (
    FILTERABLE,
    JSON,
    MONEY,
    RANGED,
    READ_ONLY,
    SORTABLE,
    BelongsTo,
    Dated,
    SnapshotOf,
)
from tradepost.domain.user import User

MAX_LINES = 100
_MOVES: dict[str, frozenset[str]] = {
    "PENDING": frozenset({"FULFILLED", "CANCELLED"}),
    "FULFILLED": frozenset(),
    "CANCELLED": frozenset(),
}


class Order(Dated, kw_only=True):
    """What a user ordered, at the prices of that moment."""

    kind: ClassVar[str] = "order"
    plural: ClassVar[str] = "orders"

    user_id: Annotated[
        str, Meta(description="Who ordered; cannot change."), FILTERABLE, BelongsTo(User, reverse="orders")
    ]
    status: Annotated[
        Literal["PENDING", "FULFILLED", "CANCELLED"],
        Meta(description="PENDING moves to FULFILLED or CANCELLED; both are final."),
        FILTERABLE,
    ] = "PENDING"
    currency: Annotated[str, Meta(description="ISO 4217."), READ_ONLY, FILTERABLE]
    total: Annotated[
        int,
        Meta(description="Sum of the line items, in major units."),
        MONEY,
        READ_ONLY,
        SORTABLE,
        FILTERABLE,
        RANGED,
    ]
    shipping_address_id: Annotated[str | None, Meta(description="One of the user's addresses.")] = None
    shipping_address: Annotated[
        msgspec.Raw | None,
        Meta(description="The address as it was when it was chosen."),
        READ_ONLY,
        JSON,
        SnapshotOf(Address),
    ] = None


def moves(status: str) -> frozenset[str]:
    """The states an order can go to from `status`."""
    return _MOVES[status]


def is_final(status: str) -> bool:
    """Whether an order in this state stays as it is."""
    return not _MOVES[status]
