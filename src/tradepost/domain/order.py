"""An order: what a user ordered, at the prices of that moment, and its status.

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
        str,
        Meta(description="The user who ordered. It cannot be changed."),
        FILTERABLE,
        BelongsTo(User, reverse="orders"),
    ]
    status: Annotated[
        Literal["PENDING", "FULFILLED", "CANCELLED"],
        Meta(description="PENDING can change to FULFILLED or CANCELLED, which are final."),
        FILTERABLE,
    ] = "PENDING"
    currency: Annotated[str, Meta(description="ISO 4217 code."), READ_ONLY, FILTERABLE]
    total: Annotated[
        int,
        Meta(description="Sum of the line item totals, in major units of the currency."),
        MONEY,
        READ_ONLY,
        SORTABLE,
        FILTERABLE,
        RANGED,
    ]
    shipping_address_id: Annotated[str | None, Meta(description="One of the user's addresses.")] = None
    shipping_address: Annotated[
        msgspec.Raw | None,
        Meta(description="Snapshot of the address, taken when it was chosen."),
        READ_ONLY,
        JSON,
        SnapshotOf(Address),
    ] = None


def moves(status: str) -> frozenset[str]:
    """The statuses that an order can change to from `status`."""
    return _MOVES[status]


def is_final(status: str) -> bool:
    """Whether an order with this status can no longer change it."""
    return not _MOVES[status]
