"""The rows of files: a record's members, plus those that only records of the past have.

A row is declared like a record: it is checked by the same rules and with the same messages as the body of a
request. Rejected rows have a `reason`, which is accepted and ignored like any read-only member.
"""

import re
import typing
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tradepost.clock import instant, parse_instant
from tradepost.domain.address import Address
from tradepost.domain.input import Values
from tradepost.domain.line_item import LineItem
from tradepost.domain.money import check_currency
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import JSON, MONEY, READ_ONLY, BelongsTo, Checked, Record
from tradepost.domain.text import EmailAddress, Identifier, Name, Sku
from tradepost.domain.user import User
from tradepost.problems import MemberError, invalid

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MAX_AHEAD_MS = 60_000  # how far the clock of the file's author may be ahead of ours


def check_id(text: str) -> str | None:
    """The error message for an id; None if it is valid."""
    return None if _UUID7.fullmatch(text) else "must be a lowercase UUIDv7, as exported files have it"


def check_instant(text: str) -> str | None:
    """The error message for an instant; None if it is valid."""
    try:
        _ms(text)
    except ValueError as error:
        return str(error)
    return None


_Id = Annotated[str | None, Meta(description="Contains the instant of creation."), Checked(check_id)]
_Instant = Annotated[str | None, Meta(description="RFC 3339."), Checked(check_instant)]
_UserId = Annotated[Identifier | None, Meta(description="The user it belongs to.")]
_UserEmail = Annotated[EmailAddress | None, Meta(description="The user it belongs to, by email.")]
_Ignored = Annotated[Any, READ_ONLY]


def _row(record: type[Record], **own: tuple[Any, Any]) -> type[Record]:
    """The row of a record: its members with its id and instant, and `own` ones as (type, default)."""
    fields = {
        "id": (_Id, None),
        "created_at": (_Instant, None),
        "reason": (_Ignored, None),
        **({"deleted_at": (_Instant, None)} if record.hides_deleted else {}),
        **own,
    }
    row: Any = msgspec.defstruct(
        f"{record.__name__}Row",
        [(name, kind, default) for name, (kind, default) in fields.items()],
        bases=(record,),
        kw_only=True,
    )
    return typing.cast("type[Record]", row)


UserRow, ProductRow = _row(User), _row(Product)
AddressRow = _row(Address, user_id=(_UserId, None), user_email=(_UserEmail, None))
# An order of the past: with an id or a reference, its prices, and the address it was shipped to.
OrderRow = _row(
    Order,
    reference=(Annotated[Name | None, Meta(description="Its name in the system it came from.")], None),
    user_id=(_UserId, None),
    user_email=(_UserEmail, None),
    currency=(Annotated[str | None, Meta(description="ISO 4217."), Checked(check_currency)], None),
    shipping_address_id=(Annotated[Identifier | None, Meta()], None),
    shipping_address=(Annotated[dict[str, Any] | None, Meta(description="Its content then."), JSON], None),
)
# A line of an order: the product's name and price at the time, or by default those of today.
LineRow = _row(
    LineItem,
    order_id=(Annotated[str, BelongsTo(OrderRow, reverse="line_items", embedded=True)], msgspec.NODEFAULT),
    product_id=(Annotated[Identifier | None, Meta()], None),
    sku=(Annotated[Sku | None, Meta()], None),
    unit_price=(Annotated[int | None, MONEY], None),
    name=(Annotated[Name | None, Meta()], None),
    created_at=(_Ignored, None),
)


class Born(typing.NamedTuple):
    """The instant of creation, in milliseconds since 1970 and as text."""

    ms: int
    text: str


def born(values: Values, now_ms: int) -> Born:
    """When a row's entity was created: from its id, its createdAt, or now. Raises `Invalid`."""
    created_at, entity_id = values["created_at"], values["id"]
    ms = ms_of(entity_id) if entity_id else _ms(created_at) if created_at else now_ms
    if ms > now_ms + _MAX_AHEAD_MS:
        raise invalid(("created_at",), "must not be in the future", "out_of_range")
    if entity_id and created_at and _ms(created_at) != ms:
        message = f"must be the instant in the id, {instant(ms)}"
        raise invalid(("created_at",), message, "not_of_id")
    return Born(ms, instant(ms))


def user_errors(values: Values) -> Iterator[MemberError]:
    """A row names its user exactly once."""
    if (values["user_id"] is None) == (values["user_email"] is None):
        missing = values["user_id"] is None
        message = "is required unless there is a userId" if missing else "is redundant: userId is set, too"
        yield MemberError(("user_email",), message, "required" if missing else "ambiguous")


def normal(text: str | None) -> str | None:
    """An instant in our own notation, if there is one."""
    return instant(_ms(text)) if text else None


def ms_of(entity_id: str) -> int:
    """The instant in a UUIDv7, in milliseconds since 1970."""
    return int(entity_id[:8] + entity_id[9:13], 16)


@lru_cache(4096)
def _ms(text: str) -> int:
    return parse_instant(text)
