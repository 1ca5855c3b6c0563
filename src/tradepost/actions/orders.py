"""Orders: placed, moved on, changed while pending, and removed; stock and total kept right throughout."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from tradepost.actions import stock
from tradepost.actions.change import Change, Rows
from tradepost.actions.plain import Plain, Refusals
from tradepost.actions.stock import Held
from tradepost.domain.address import Address
from tradepost.domain.input import Values
from tradepost.domain.line_item import LineItem
from tradepost.domain.money import MAX_TOTAL
from tradepost.domain.order import Order, is_final, moves, quantities
from tradepost.domain.record import members
from tradepost.problems import Final, Invalid, MemberError, Path
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.statements import orders

_LINES = plain(LineItem)
_ORDERS = plain(Order)
_WIDTH = len(_ORDERS.names)


class Orders(Plain):
    """The actions of orders."""

    refuses: ClassVar[Refusals] = {"DELETE": (Final,)}

    def __init__(self) -> None:
        super().__init__(Order)

    @property
    def events(self) -> tuple[str, ...]:
        return ("order.placed", "order.updated", "order.fulfilled", "order.cancelled", "order.deleted")

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        draft = await (
            _judge_new(change, values) if current is None else _judge_change(change, current, values)
        )
        return draft.errors

    async def create(self, change: Change, values: Values) -> Rows:
        """Places an order at today's prices and takes its stock."""
        draft = await _judge_new(change, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        return await _place(change, values, draft)

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Makes an order say what is given: its lines, its address and its status."""
        draft = await _judge_change(change, current, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        order = dict(zip(_ORDERS.names, current, strict=True))
        after = dict(order)
        if draft.readdressed:
            after |= {"shipping_address_id": values["shipping_address_id"], "shipping_address": draft.address}
        lines = draft.lines.kept_rows
        if draft.lines.differ:
            lines = await draft.lines.apply(change, draft.held, after)
        after["status"] = values["status"]
        if after["status"] == "CANCELLED" and order["status"] != "CANCELLED":
            await _give_back(change, lines)
        return await _store(change, order, after, lines, updated=draft.lines.differ or draft.readdressed)

    async def delete(self, change: Change, current: Row) -> None:
        """Removes an order; a pending one gives back its stock, a fulfilled one stays."""
        order = dict(zip(_ORDERS.names, current, strict=True))
        if order["status"] == "FULFILLED":
            message = "A fulfilled order is an accounting record and cannot be deleted"
            raise Final(message)
        if order["status"] == "PENDING":
            await _give_back(change, await change.tx.rows(orders.LINES, order_id=order["id"]))
        await change.tx.run(orders.DELETE_LINES, order_id=order["id"])
        await change.tx.run(self.statements.delete, id=order["id"])
        change.announce("order.deleted", Order.plural, order["id"])


class _Lines:
    """The lines an order has and is to have. One that names a line of the order keeps it as it was.

    What could not be read of a line is None.
    """

    def __init__(self, old: Rows, given: Sequence[Any]) -> None:
        self.kept_rows = old
        self._old = {row[0]: dict(zip(_LINES.names, row, strict=True)) for row in old}
        self._given = given
        self._kept = [self._keeps(line) for line in given]
        kept_ids = [kept["id"] for kept in self._kept if kept is not None]
        self.differ = kept_ids != list(self._old) or any(
            kept is None or kept["quantity"] != line.quantity
            for kept, line in zip(self._kept, given, strict=True)
        )
        self.before = Counter(
            quantities((line["product_id"], line["quantity"]) for line in self._old.values())
        )
        self.after = quantities(
            (line.product_id, line.quantity or 0) for line in given if line.product_id is not None
        )

    def _keeps(self, line: Any) -> dict[str, Any] | None:
        kept = self._old.get(line.id) if isinstance(line.id, str) else None
        return kept if kept is not None and kept["product_id"] == line.product_id else None

    def errors(self, held: dict[str, Held], currency: str | None) -> list[MemberError]:
        """What is wrong with the lines that are to be."""
        new = [
            (("line_items", i), line.product_id)
            for i, line in enumerate(self._given)
            if line.product_id is not None and self._kept[i] is None
        ]
        return [
            *self._twice(),
            *unorderable(held, new, currency),
            *_shortages(held, self._given, self.before),
            *self._unpayable(held),
        ]

    async def apply(self, change: Change, held: dict[str, Held], order: dict[str, Any]) -> Rows:
        """Changes the lines and the stock, sets the order's total; the new lines in their order."""
        products = {*self.before, *self.after}
        await stock.move(
            change, held, {each: self.after.get(each, 0) - self.before[each] for each in products}
        )
        lines = [self._line(change, held, i, order) for i in range(len(self._given))]
        order["total"] = sum(line["total"] for line in lines)
        await self._store(change, lines)
        return sorted(tuple(line[name] for name in _LINES.names) for line in lines)

    def _unpayable(self, held: dict[str, Held]) -> list[MemberError]:
        return beyond_total(
            (held[line.product_id].price if kept is None else kept["unit_price"]) * (line.quantity or 0)
            for kept, line in zip(self._kept, self._given, strict=True)
            if kept is not None or line.product_id in held
        )

    def _twice(self) -> list[MemberError]:
        seen: set[str] = set()
        errors = []
        for i, kept in enumerate(self._kept):
            if kept is not None and kept["id"] in seen:
                errors.append(MemberError(("line_items", i, "id"), "appears twice", "duplicate"))
            if kept is not None:
                seen.add(kept["id"])
        return errors

    def _line(
        self, change: Change, held: dict[str, Held], index: int, order: dict[str, Any]
    ) -> dict[str, Any]:
        given, kept = self._given[index], self._kept[index]
        if kept is None:
            return new_line(change, order["id"], held[given.product_id], given.quantity)
        if kept["quantity"] == given.quantity:
            return kept
        return requantified(change, kept, given.quantity)

    async def _store(self, change: Change, lines: list[dict[str, Any]]) -> None:
        ids = {line["id"] for line in lines}
        for old_id in self._old.keys() - ids:
            await change.tx.run(_LINES.delete, id=old_id)
        for line in lines:
            old = self._old.get(line["id"])
            if old is not None and old != line:
                new = {f"new_{name}": value for name, value in line.items()}
                await change.tx.run(_LINES.update, at_id=line["id"], **new)
        await change.tx.many(_LINES.insert, [line for line in lines if line["id"] not in self._old])


@dataclass
class _Draft:
    """An order as it is to be: what is wrong with that, and what was found in judging it."""

    errors: list[MemberError]
    lines: _Lines
    held: dict[str, Held]
    address: str | None
    readdressed: bool = False


async def _judge_new(change: Change, values: Values) -> _Draft:
    """Judges an order that is to be placed, as far as its members could be read."""
    lines = _Lines([], values.get("line_items", []))
    held, errors = await _basket(change, values, lines)
    if values.get("status", "PENDING") != "PENDING":
        errors.append(MemberError(("status",), "of a new order is PENDING", "invalid_transition"))
    address, wrong = await _address(change, values)
    return _Draft([*errors, *wrong, *lines.errors(held, None)], lines, held, address)


async def _judge_change(change: Change, current: Row, values: Values) -> _Draft:
    """Judges what an order is to become, as far as its members could be read."""
    order = dict(zip(_ORDERS.names, current, strict=True))
    values = order | values
    errors = []
    if values["user_id"] != order["user_id"]:
        errors.append(MemberError(("user_id",), "cannot change", "immutable"))
    old = await change.tx.rows(orders.LINES, order_id=order["id"])
    given = values["line_items"] if "line_items" in values else [_LINES.load(row) for row in old]
    lines = _Lines(old, given)
    readdressed = values["shipping_address_id"] != order["shipping_address_id"]
    errors += _move_errors(order["status"], values["status"], lines=lines.differ, readdressed=readdressed)
    address, held = None, {}
    if readdressed:
        address, wrong = await _address(
            change, order | {"shipping_address_id": values["shipping_address_id"]}
        )
        errors += wrong
    if lines.differ and not is_final(order["status"]):
        held = await stock.hold(change, {*lines.before, *lines.after})
        errors += lines.errors(held, order["currency"])
    return _Draft(errors, lines, held, address, readdressed)


def new_line(change: Change, order_id: str, product: Held, quantity: int) -> dict[str, Any]:
    """A line with snapshots of the product as it is now."""
    return {
        "id": change.new_id(),
        "order_id": order_id,
        "product_id": product.id,
        "quantity": quantity,
        "sku": product.sku,
        "name": product.name,
        "unit_price": product.price,
        "currency": product.currency,
        "total": product.price * quantity,
        "created_at": change.now,
        "updated_at": change.now,
        "version": 1,
    }


def requantified(change: Change, line: dict[str, Any], quantity: int) -> dict[str, Any]:
    """The line with another quantity, at the price it was added for."""
    return line | {
        "quantity": quantity,
        "total": line["unit_price"] * quantity,
        "updated_at": change.now,
        "version": line["version"] + 1,
    }


def unorderable(
    held: dict[str, Held], lines: Iterable[tuple[Path, str]], currency: str | None = None
) -> list[MemberError]:
    """Lines whose product is unknown, archived or of another currency than the others."""
    errors = []
    for at, product_id in lines:
        product = held.get(product_id)
        if product is None or product.deleted_at is not None:
            errors.append(MemberError((*at, "product_id"), "names no product", "unknown"))
        elif product.status != "ACTIVE":
            errors.append(MemberError((*at, "product_id"), "names an archived product", "archived"))
        elif product.currency != (currency or product.currency):
            message = f"is priced in {product.currency}, the order in {currency}"
            errors.append(MemberError((*at, "product_id"), message, "currency_mismatch"))
        else:
            currency = product.currency
    return errors


def beyond_total(totals: Iterable[int], at: str = "line_items") -> list[MemberError]:
    """Line totals that add up to more than a JSON number carries exactly."""
    if sum(totals) <= MAX_TOTAL:
        return []
    return [MemberError((at,), "makes the order's total larger than it can be", "out_of_range")]


def shortage(held: Held, pieces: int, at: Path) -> MemberError | None:
    """Too little stock for `pieces` more."""
    if held.stock is None or pieces <= held.stock:
        return None
    return MemberError(
        (*at, "quantity"),
        f"is more than the stock of {held.sku}, which is {held.stock}",
        "insufficient_stock",
    )


def _shortages(held: dict[str, Held], lines: Sequence[Any], before: Counter[str]) -> list[MemberError]:
    """The lines at which the stock runs out, counting what the order holds already."""
    wanted: Counter[str] = Counter()
    errors = []
    for i, line in enumerate(lines):
        wanted[line.product_id] += line.quantity or 0
        product = held.get(line.product_id)
        if product is not None:
            short = shortage(product, wanted[line.product_id] - before[line.product_id], ("line_items", i))
            errors.extend([short] if short else [])
    return errors


def _move_errors(old: str, new: str, *, lines: bool, readdressed: bool) -> list[MemberError]:
    errors = []
    if new != old and new not in moves(old):
        allowed = " or ".join(sorted(moves(old))) or "nothing: it is final"
        message = f"cannot go from {old} to {new}; it can go to {allowed}"
        errors.append(MemberError(("status",), message, "invalid_transition"))
    if is_final(old):
        touched = [name for name, is_ in (("line_items", lines), ("shipping_address_id", readdressed)) if is_]
        errors += [MemberError((name,), f"cannot change: the order is {old}", "final") for name in touched]
    return errors


async def _basket(change: Change, values: Values, lines: _Lines) -> tuple[dict[str, Held], list[MemberError]]:
    """The products, held, and what is wrong with the user: a key that acts for one user knows no other."""
    if "user_id" not in values:
        return await stock.hold(change, lines.after), []
    held, status = await stock.basket(change, lines.after, values["user_id"])
    if status is None or change.caller.user_id not in (None, values["user_id"]):
        return held, [MemberError(("user_id",), "names no user", "unknown")]
    if status != "ACTIVE":
        return held, [MemberError(("user_id",), "names a deactivated user", "deactivated")]
    return held, []


async def _address(change: Change, values: Values) -> tuple[str | None, list[MemberError]]:
    """A snapshot of the address an order is sent to, as JSON."""
    address_id = values.get("shipping_address_id")
    if address_id is None or "user_id" not in values:
        return None, []
    row = await change.tx.row(plain(Address).get, id=address_id)
    address = plain(Address).load(row) if row is not None else None
    if not isinstance(address, Address) or address.user_id != values["user_id"]:
        return None, [MemberError(("shipping_address_id",), "names no address of the user", "unknown")]
    snapshot = {each.json_name: getattr(address, each.name) for each in members(Address)}
    return msgspec.json.encode(snapshot).decode(), []


async def _place(change: Change, values: Values, draft: _Draft) -> Rows:
    order_id = change.new_id()
    lines = [
        new_line(change, order_id, draft.held[line.product_id], line.quantity)
        for line in values["line_items"]
    ]
    await stock.move(change, draft.held, draft.lines.after)
    order = {
        "id": order_id,
        "user_id": values["user_id"],
        "status": "PENDING",
        "currency": lines[0]["currency"],
        "total": sum(line["total"] for line in lines),
        "shipping_address_id": values["shipping_address_id"],
        "shipping_address": draft.address,
        "created_at": change.now,
        "updated_at": change.now,
        "version": 1,
    }
    await change.tx.run(_ORDERS.insert, **order)
    await change.tx.many(_LINES.insert, lines)
    change.announce("order.placed", Order.plural, order_id)
    return _joined(order, [tuple(line.values()) for line in lines])


async def _give_back(change: Change, lines: Iterable[Row]) -> None:
    pieces = quantities((row[2], row[3]) for row in lines)
    held = await stock.hold(change, pieces)
    await stock.move(change, held, {product_id: -count for product_id, count in pieces.items()})


async def _store(
    change: Change, before: dict[str, Any], after: dict[str, Any], lines: Rows, *, updated: bool
) -> Rows:
    moved = after["status"] != before["status"]
    if moved or updated:
        after |= {"version": before["version"] + 1, "updated_at": change.now}
        await change.tx.run(_ORDERS.update, at_id=after["id"], **{f"new_{k}": v for k, v in after.items()})
        if updated:
            change.announce("order.updated", Order.plural, after["id"])
        if moved:
            change.announce(f"order.{after['status'].lower()}", Order.plural, after["id"])
    return _joined(after, lines)


def _joined(order: dict[str, Any], lines: Iterable[Row]) -> Rows:
    head = tuple(order[name] for name in _ORDERS.names)
    return [head + line for line in lines]
