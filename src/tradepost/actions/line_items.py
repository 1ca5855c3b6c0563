"""Line items of pending orders: added, changed in quantity, removed; each is a change of the order too."""

from dataclasses import dataclass
from typing import Any, ClassVar

from tradepost.actions import stock
from tradepost.actions.change import Change, Rows
from tradepost.actions.orders import beyond_total, new_line, requantified, shortage, unorderable
from tradepost.actions.plain import Plain, Refusals
from tradepost.actions.stock import Held
from tradepost.domain.input import Values
from tradepost.domain.line_item import LineItem
from tradepost.domain.order import MAX_LINES, Order, is_final
from tradepost.problems import Invalid, MemberError
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.statements import orders

_TOTAL = plain(LineItem).names.index("total")


class LineItems(Plain):
    """The actions of line items."""

    refuses: ClassVar[Refusals] = {"DELETE": (Invalid,)}

    def __init__(self) -> None:
        super().__init__(LineItem)

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        return (await self._draft(change, values, current)).errors

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds a line at today's price and takes its stock."""
        draft = await self._draft(change, values, None)
        if draft.errors:
            raise Invalid.of(draft.errors)
        line = new_line(change, draft.order["id"], draft.held[values["product_id"]], values["quantity"])
        await stock.move(change, draft.held, {line["product_id"]: line["quantity"]})
        row = await change.add(LineItem, line)
        await _touch(change, draft.order)
        return [row]

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Changes the quantity; the order and the product of a line stay."""
        draft = await self._draft(change, values, current)
        if draft.errors:
            raise Invalid.of(draft.errors)
        line = dict(zip(self.statements.names, current, strict=True))
        more = values["quantity"] - line["quantity"]
        if more == 0:
            return [current]
        line = requantified(change, line, values["quantity"])
        await stock.move(change, draft.held, {line["product_id"]: more})
        await change.tx.run(
            self.statements.update, at_id=line["id"], **{f"new_{k}": v for k, v in line.items()}
        )
        await _touch(change, draft.order)
        return [tuple(line.values())]

    async def _draft(self, change: Change, values: Values, current: Row | None) -> "_Draft":
        """What is wrong with a line as it is to be, as far as its members could be read."""
        old = dict(zip(self.statements.names, current or (), strict=False))
        errors = [
            MemberError((name,), "cannot change", "immutable")
            for name in ("order_id", "product_id")
            if old and values.get(name, old[name]) != old[name]
        ]
        new = values | {name: old[name] for name in ("order_id", "product_id") if old}
        if old and new.get("quantity", old["quantity"]) == old["quantity"]:
            return _Draft(errors, {}, {})
        order, lines, wrong = await _pending(change, new.get("order_id"))
        errors += wrong
        if not old and len(lines) >= MAX_LINES:
            errors.append(
                MemberError(("order_id",), f"names an order that has its {MAX_LINES} lines", "length")
            )
        product_id, quantity = new.get("product_id"), new.get("quantity", 0)
        held = await stock.hold(change, [] if product_id is None else [product_id])
        if product_id is not None and not old:
            errors += unorderable(held, [((), product_id)], order.get("currency"))
        if product_id in held:
            short = shortage(held[product_id], quantity - old.get("quantity", 0), ())
            price = old.get("unit_price", held[product_id].price)
            others = [row[_TOTAL] for row in lines if row[0] != old.get("id")]
            errors += [*([short] if short else []), *beyond_total([price * quantity, *others], "quantity")]
        return _Draft(errors, order, held)

    async def delete(self, change: Change, current: Row) -> None:
        """Removes a line and gives its stock back; an order keeps at least one."""
        line = dict(zip(self.statements.names, current, strict=True))
        order, lines, errors = await _pending(change, line["order_id"])
        if len(lines) == 1:
            message = "The last line of an order cannot be removed; cancel or delete the order"
            errors.append(MemberError((), message, "last_line"))
        if errors:
            raise Invalid.of(errors)
        held = await stock.hold(change, [line["product_id"]])
        await stock.move(change, held, {line["product_id"]: -line["quantity"]})
        await change.tx.run(self.statements.delete, id=line["id"])
        await _touch(change, order)


@dataclass
class _Draft:
    """A line as it is to be: what is wrong with that, its order, and its product, held."""

    errors: list[MemberError]
    order: dict[str, Any]
    held: dict[str, Held]


async def _pending(change: Change, order_id: str | None) -> tuple[dict[str, Any], Rows, list[MemberError]]:
    """The order, held, and its lines; what is wrong with it, since only a pending one takes changes."""
    if order_id is None:
        return {}, [], []
    row = await change.tx.row(plain(Order).lock, id=order_id)
    order = dict(zip(plain(Order).names, row or (), strict=False))
    if row is None or change.caller.user_id not in (None, order["user_id"]):
        return {}, [], [MemberError(("order_id",), "names no order", "unknown")]
    errors = []
    if is_final(order["status"]):
        message = f"names an order that is {order['status']}; its lines cannot change"
        errors.append(MemberError(("order_id",), message, "final"))
    return order, await change.tx.rows(orders.LINES, order_id=order_id), errors


async def _touch(change: Change, order: dict[str, Any]) -> None:
    await change.tx.run(orders.RETOTAL, order_id=order["id"], now=change.now)
    change.announce("order.updated", Order.plural, order["id"])
