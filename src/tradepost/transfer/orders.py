"""Importing orders of the past: they keep their prices and their status, and take no stock.

They may refer to archived products and deactivated users. By id they may even refer to deleted ones, as the
orders of an export do.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tradepost.actions.change import Change
from tradepost.actions.orders import own
from tradepost.clock import instant
from tradepost.domain.address import Address
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.line_item import LineItem
from tradepost.domain.money import MAX_PRICE, MAX_TOTAL, UNITS, NotMoney, to_units
from tradepost.domain.order import Order
from tradepost.domain.record import members
from tradepost.problems import Invalid, MemberError
from tradepost.storage.statements import references
from tradepost.transfer.file_entity import RowShape
from tradepost.transfer.kind import Entry, ImportOutcome, item
from tradepost.transfer.order_lookups import OrderLookups, Priced, look_up
from tradepost.transfer.row import LineRow, OrderRow, born, check_id, ms_of, user_errors

_REMEMBERED_PRICES = 16_384

_ADDRESS_NAMES = [(each.name, each.json_name) for each in members(Address)]
_address = Input(Address, names_of(Address), frozenset({"user_id"}))


class OrderKind:
    """The import of orders."""

    record = Order
    shape = RowShape(OrderRow, LineRow)

    def __init__(self) -> None:
        self.input = Input(OrderRow, names_of(OrderRow), patching=True)

    def entry(self, values: Values, now_ms: int) -> Entry:
        errors = [*_identity_errors(values), *_line_errors(values["line_items"], now_ms)]
        errors += _address_errors(values["shipping_address"])
        if errors:
            raise Invalid.of(errors)
        return Entry(values, born(values, now_ms), 2 + len(values["line_items"]))

    async def add(self, change: Change, entries: Sequence[Entry]) -> list[ImportOutcome]:
        batch = _OrderBatch(change, await look_up(change, [entry.values for entry in entries]))
        outcomes = [batch.judge(entry) for entry in entries]
        await batch.write()
        return outcomes


class _OrderBatch:
    """Orders that are written together."""

    def __init__(self, change: Change, known: OrderLookups) -> None:
        self._change = change
        self._known = known
        self._orders: list[Order] = []
        self._lines: list[LineItem] = []
        self._references: list[dict[str, str]] = []

    def judge(self, entry: Entry) -> ImportOutcome:
        """The outcome for an order; if it is added, its rows are written by `write`."""
        values, known = entry.values, self._known
        if values["reference"] in known.references or values["id"] in known.orders:
            return "there"
        errors: list[MemberError] = []
        user_id = known.users.of(values, errors)
        address = self._address(values, user_id, errors)
        currency, sold = self._sold(values, errors)
        total = sum(price * line.quantity for line, _, price in sold)
        if total > MAX_TOTAL:
            errors.append(MemberError(("line_items",), "add up to more than an order can be", "out_of_range"))
        if errors:
            return errors
        order = item(
            self._change,
            Order,
            entry,
            user_id=user_id,
            currency=currency,
            total=total,
            shipping_address=address,
        )
        self._orders.append(order)
        self._remember(values["reference"], order.id)
        self._lines += [self._line(entry, order, *each) for each in sold]
        return "added"

    async def write(self) -> None:
        """Writes the rows and announces the orders."""
        change = self._change
        await change.add_many(self._orders)
        await change.add_many(self._lines)
        if self._references:
            await change.tx.many(references.ADD, self._references)
        for order in self._orders:
            change.announce("order.placed", Order.plural, order.id)

    def _address(self, values: Values, user_id: str, errors: list[MemberError]) -> str | None:
        """The address in the file; otherwise the present content of the user's address."""
        snapshot, address_id = values["shipping_address"], values["shipping_address_id"]
        if snapshot is not None or address_id is None:
            return None if snapshot is None else msgspec.json.encode(snapshot).decode()
        address = self._known.addresses.get(address_id)
        if address is None or address.user_id != user_id:
            errors.append(
                MemberError(
                    ("shipping_address_id",), "must be the id of one of the user's addresses", "unknown"
                )
            )
            return None
        snapshot = {outside: getattr(address, name) for name, outside in _ADDRESS_NAMES}
        return msgspec.json.encode(snapshot).decode()

    def _sold(self, values: Values, errors: list[MemberError]) -> tuple[str, list[tuple[Any, Priced, int]]]:
        """The currency, and the lines with products and prices. The default is the products' currency."""
        stated: str | None = values["currency"]
        currency = stated or ""
        sold = []
        for index, line in enumerate(values["line_items"]):
            product = self._known.product(line)
            if product is None:
                member, what = ("sku", "sku") if line.product_id is None else ("product_id", "id")
                message = f"must be the {what} of an existing product"
                errors.append(MemberError(("line_items", index, member), message, "unknown"))
                continue
            currency = currency or product.currency
            if product.currency != currency and (stated is None or line.unit_price is None):
                message = f"is priced in {product.currency}, but the order is in {currency}"
                errors.append(MemberError(("line_items", index), message, "currency_mismatch"))
                continue
            price = product.price if line.unit_price is None else _units(line.unit_price, currency)
            if isinstance(price, str):
                errors.append(MemberError(("line_items", index, "unit_price"), price, "not_money"))
            else:
                sold.append((line, product, price))
        return currency, sold

    def _line(self, entry: Entry, order: Order, line: Any, product: Priced, price: int) -> LineItem:
        line_id = line.id or self._change.new_id(entry.born.ms)
        created_at = instant(ms_of(line_id)) if line.id else entry.born.text
        values = own(line) | {"product_id": product.id}
        return LineItem(
            id=line_id,
            order_id=order.id,
            sku=line.sku or product.sku,
            name=line.name or product.name,
            unit_price=price,
            currency=order.currency,
            total=price * line.quantity,
            created_at=created_at,
            updated_at=created_at,
            **values,
        )

    def _remember(self, reference: str | None, order_id: str) -> None:
        self._known.orders.add(order_id)
        if reference is not None:
            self._known.references.add(reference)
            row = {"kind": Order.kind, "reference": reference, "entity_id": order_id}
            self._references.append(row)


def _identity_errors(values: Values) -> Iterator[MemberError]:
    """An order needs an identity, and exactly one statement of its user."""
    yield from user_errors(values)
    if values["id"] is None and values["reference"] is None:
        message = "is required unless there is an id: it identifies the order when the file is imported again"
        yield MemberError(("reference",), message, "required")


def _line_errors(lines: Sequence[Any], now_ms: int) -> Iterator[MemberError]:
    for index, line in enumerate(lines):
        if line.product_id is None and line.sku is None:
            yield MemberError(
                ("line_items", index, "sku"), "is required unless there is a productId", "required"
            )
        if line.id is None:
            continue
        fault = check_id(line.id) or ("must not be in the future" if ms_of(line.id) > now_ms else None)
        if fault:
            yield MemberError(("line_items", index, "id"), fault, "invalid")


def _address_errors(address: Mapping[str, Any] | None) -> list[MemberError]:
    if address is None:
        return []
    try:
        _address.check(address)
    except Invalid as error:
        return [
            MemberError(("shipping_address", *each.path), each.message, each.code) for each in error.errors
        ]
    return []


@lru_cache(_REMEMBERED_PRICES)
def _units(price: float, currency: str) -> int | str:
    """A price as it is stored, or an error message."""
    try:
        units = to_units(price, currency)
    except NotMoney as error:
        return str(error)
    return units if units <= MAX_PRICE else f"must be at most {MAX_PRICE // UNITS}"
