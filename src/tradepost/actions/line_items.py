"""Line items of pending orders: added, changed and removed. Each change updates the order, too."""

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from tradepost.actions import stock
from tradepost.actions.change import Change, Rows
from tradepost.actions.orders import beyond_total, lines_of, new_line, shortage, unorderable, updated_line
from tradepost.actions.standard import Refusals, StandardActions
from tradepost.actions.stock import Products
from tradepost.domain.input import Values
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import MAX_LINES, Order, is_final
from tradepost.problems import Invalid, MemberError
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import orders


class LineItems(StandardActions[LineItem]):
    """The actions of line items."""

    refuses: ClassVar[Refusals] = {"DELETE": (Invalid,)}

    def __init__(self) -> None:
        super().__init__(LineItem)

    async def judge(self, change: Change, values: Values, current: LineItem | None) -> list[MemberError]:
        if current is None:
            return (await _judge_new(change, values)).errors
        return (await _judge_change(change, current, values)).errors

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds a line at today's price and takes its stock.

        Raises `Invalid`, also without enough stock.
        """
        draft = await _judge_new(change, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        product = draft.products[values["product_id"]]
        own = {name: value for name, value in values.items() if name != "order_id"}
        line = new_line(change, values["order_id"], product, own)
        await stock.take(change, draft.products, {line.product_id: line.quantity})
        row = await change.add(line)
        await _update_order(change, line.order_id)
        return [row]

    async def replace(self, change: Change, current: LineItem, values: Values) -> Rows:
        """Changes the quantity. The order and the product of a line cannot change.

        Raises `Invalid` for those, and without enough stock.
        """
        draft = await _judge_change(change, current, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        line = await updated_line(change, current, values)
        if line is not current:
            await stock.take(change, draft.products, {line.product_id: line.quantity - current.quantity})
            await _update_order(change, line.order_id)
        return [self.statements.row(line)]

    async def delete(self, change: Change, current: LineItem) -> None:
        """Removes a line and gives its stock back. The last line of an order cannot be removed.

        Raises `Invalid` for it, and if the order is not pending.
        """
        order = await _pending(change, current.order_id)
        errors = order.errors
        if len(order.lines) == 1:
            message = "The last line of an order cannot be removed; cancel or delete the order"
            errors.append(MemberError((), message, "last_line"))
        if errors:
            raise Invalid.of(errors)
        products = await stock.lock(change, [current.product_id])
        await stock.take(change, products, {current.product_id: -current.quantity})
        await change.remove(current)
        await _update_order(change, current.order_id)


@dataclass
class _LineDraft:
    """A line to be: its errors, and its product, locked."""

    errors: list[MemberError]
    products: Products


@dataclass
class _PendingOrder:
    """An order, locked, with its lines; its errors if it takes no changes of lines."""

    errors: list[MemberError]
    lines: list[LineItem]
    currency: str | None = None


async def _judge_new(change: Change, values: Values) -> _LineDraft:
    """Judges a line that is to be added, as far as its members could be read."""
    order = await _pending(change, values.get("order_id"))
    errors = order.errors
    if len(order.lines) >= MAX_LINES:
        errors.append(MemberError(("order_id",), f"names an order that has its {MAX_LINES} lines", "length"))
    product_id, quantity = values.get("product_id"), values.get("quantity", 0)
    products = await stock.lock(change, [] if product_id is None else [product_id])
    if product_id is not None:
        errors += unorderable(products, [((), product_id)], order.currency)
    if product_id is not None and product_id in products:
        short = shortage(products[product_id], quantity, ())
        totals = [products[product_id].price * quantity, *(line.total for line in order.lines)]
        errors += [*([short] if short else []), *beyond_total(totals, "quantity")]
    return _LineDraft(errors, products)


async def _judge_change(change: Change, line: LineItem, values: Values) -> _LineDraft:
    """Judges what a line is to become; its order and its product stay."""
    errors = [
        MemberError((name,), "cannot change", "immutable")
        for name in ("order_id", "product_id")
        if values.get(name, getattr(line, name)) != getattr(line, name)
    ]
    values = values | {"order_id": line.order_id, "product_id": line.product_id}
    if msgspec.structs.replace(line, **statements_of(LineItem).stored(values)) == line:
        return _LineDraft(errors, {})
    quantity = values.get("quantity", line.quantity)
    order = await _pending(change, line.order_id)
    products = await stock.lock(change, [line.product_id])
    short = shortage(products[line.product_id], quantity - line.quantity, ())
    totals = [line.unit_price * quantity, *(other.total for other in order.lines if other.id != line.id)]
    errors += [*order.errors, *([short] if short else []), *beyond_total(totals, "quantity")]
    return _LineDraft(errors, products)


async def _pending(change: Change, order_id: str | None) -> _PendingOrder:
    """Locks an order whose lines are to change, which only a pending one allows."""
    if order_id is None:
        return _PendingOrder([], [])
    row = await change.tx.row(statements_of(Order).lock, id=order_id)
    order = None if row is None else statements_of(Order).load(row)
    if order is None or change.caller.user_id not in (None, order.user_id):
        return _PendingOrder(
            [MemberError(("order_id",), "must be the id of an existing order", "unknown")], []
        )
    errors = []
    if is_final(order.status):
        message = f"names an order that is {order.status}; its lines cannot change"
        errors.append(MemberError(("order_id",), message, "final"))
    return _PendingOrder(errors, await lines_of(change, order.id), order.currency)


async def _update_order(change: Change, order_id: str) -> None:
    await change.tx.run(orders.RETOTAL, order_id=order_id, now=change.now_at)
    change.announce("order.updated", Order.plural, order_id)
