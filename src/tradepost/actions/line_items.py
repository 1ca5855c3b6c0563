"""Line items of pending orders: added, changed in quantity, removed; each is a change of the order too."""

from typing import Any, ClassVar

from tradepost.actions import stock
from tradepost.actions.change import Change, Rows
from tradepost.actions.orders import checked_total, new_line, requantified, shortage, unorderable
from tradepost.actions.plain import Plain, Refusals
from tradepost.actions.stock import Held
from tradepost.domain.input import Values
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import MAX_LINES, Order, is_final
from tradepost.problems import Invalid, MemberError, invalid
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.statements import orders


class LineItems(Plain):
    """The actions of line items."""

    refuses: ClassVar[Refusals] = {"DELETE": (Invalid,)}

    def __init__(self) -> None:
        super().__init__(LineItem)

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds a line at today's price and takes its stock."""
        order, lines = await _pending(change, values["order_id"])
        if len(lines) >= MAX_LINES:
            raise invalid(("order_id",), f"names an order that has its {MAX_LINES} lines", "length")
        held = await stock.hold(change, [values["product_id"]])
        errors = unorderable(held, [((), values["product_id"])], order["currency"])
        if not errors:
            _check_stock(held[values["product_id"]], values["quantity"])
        if errors:
            raise Invalid(errors[0].message, errors)
        line = new_line(change, order["id"], held[values["product_id"]], values["quantity"])
        checked_total([line["total"], *(row[8] for row in lines)])
        await stock.move(change, held, {line["product_id"]: line["quantity"]})
        row = await change.add(LineItem, line)
        await _touch(change, order)
        return [row]

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Changes the quantity; the order and the product of a line stay."""
        line = dict(zip(self.statements.names, current, strict=True))
        fixed = [name for name in ("order_id", "product_id") if values.get(name, line[name]) != line[name]]
        if fixed:
            raise Invalid(
                "Only the quantity can change",
                [MemberError((name,), "cannot change", "immutable") for name in fixed],
            )
        more = values["quantity"] - line["quantity"]
        if more == 0:
            return [current]
        order, lines = await _pending(change, line["order_id"])
        held = await stock.hold(change, [line["product_id"]])
        _check_stock(held[line["product_id"]], more)
        line = requantified(change, line, values["quantity"])
        checked_total([line["total"], *(row[8] for row in lines if row[0] != line["id"])])
        await stock.move(change, held, {line["product_id"]: more})
        await change.tx.run(
            self.statements.update, at_id=line["id"], **{f"new_{k}": v for k, v in line.items()}
        )
        await _touch(change, order)
        return [tuple(line.values())]

    async def delete(self, change: Change, current: Row) -> None:
        """Removes a line and gives its stock back; an order keeps at least one."""
        line = dict(zip(self.statements.names, current, strict=True))
        order, lines = await _pending(change, line["order_id"])
        if len(lines) == 1:
            raise invalid(
                (), "The last line of an order cannot be removed; cancel or delete the order", "last_line"
            )
        held = await stock.hold(change, [line["product_id"]])
        await stock.move(change, held, {line["product_id"]: -line["quantity"]})
        await change.tx.run(self.statements.delete, id=line["id"])
        await _touch(change, order)


async def _pending(change: Change, order_id: str) -> tuple[dict[str, Any], Rows]:
    """The order, held, and its lines; only a pending one takes changes."""
    row = await change.tx.row(plain(Order).lock, id=order_id)
    order = dict(zip(plain(Order).names, row or (), strict=False))
    if row is None or change.caller.user_id not in (None, order["user_id"]):
        raise invalid(("order_id",), "names no order", "unknown")
    if is_final(order["status"]):
        raise invalid(
            ("order_id",), f"names an order that is {order['status']}; its lines cannot change", "final"
        )
    return order, await change.tx.rows(orders.LINES, order_id=order_id)


def _check_stock(product: Held, pieces: int) -> None:
    short = shortage(product, pieces, ())
    if short:
        raise Invalid(short.message, [short])


async def _touch(change: Change, order: dict[str, Any]) -> None:
    await change.tx.run(orders.RETOTAL, order_id=order["id"], now=change.now)
    change.announce("order.updated", Order.plural, order["id"])
