"""Orders: placed, fulfilled, cancelled, changed while pending, and removed; stock and total stay right."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from tradepost.actions import stock
from tradepost.actions.change import Change, Rows
from tradepost.actions.standard import Refusals, StandardActions
from tradepost.actions.stock import LockedProduct, Products
from tradepost.domain.address import Address
from tradepost.domain.input import Input, Values, names_of
from tradepost.domain.line_item import LineItem
from tradepost.domain.money import MAX_TOTAL
from tradepost.domain.order import Order, is_final, moves
from tradepost.domain.record import members
from tradepost.problems import Final, Invalid, MemberError, Path
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import orders

_WRITABLE = tuple(each.name for each in Input(LineItem, names_of(LineItem), frozenset({"order_id"})).taken)


class Orders(StandardActions[Order]):
    """The actions of orders."""

    refuses: ClassVar[Refusals] = {"DELETE": (Final,)}

    def __init__(self) -> None:
        super().__init__(Order)

    @property
    def events(self) -> tuple[str, ...]:
        return ("order.placed", "order.updated", "order.fulfilled", "order.cancelled", "order.deleted")

    async def judge(self, change: Change, values: Values, current: Order | None) -> list[MemberError]:
        draft = await (
            _judge_new(change, values) if current is None else _judge_change(change, current, values)
        )
        return draft.errors

    async def create(self, change: Change, values: Values) -> Rows:
        """Places an order at today's prices and takes its stock.

        Returns a row for each line. Raises `Invalid`, also if the stock does not suffice.
        """
        draft = await _judge_new(change, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        order_id = change.new_id()
        lines = [
            new_line(change, order_id, draft.products[line.product_id], own(line))
            for line in values["line_items"]
        ]
        await stock.take(change, draft.products, draft.lines.after)
        order = Order(
            id=order_id,
            currency=lines[0].currency,
            total=sum(line.total for line in lines),
            shipping_address=draft.address,
            created_at=change.now_at,
            updated_at=change.now_at,
            **self.statements.stored(values),
        )
        head = await change.add(order)
        rows = await change.add_many(lines)
        change.announce("order.placed", Order.plural, order_id)
        return [head + row for row in rows]

    async def replace(self, change: Change, current: Order, values: Values) -> Rows:
        """Sets the members of an order: its lines, its address and its status.

        Returns a row for each line. Raises `Invalid` for a transition or a change that its status does not
        allow, and without enough stock.
        """
        draft = await _judge_change(change, current, values)
        if draft.errors:
            raise Invalid.of(draft.errors)
        order, lines = msgspec.structs.replace(current, **self.statements.stored(values)), draft.lines.old
        if draft.readdressed:
            order.shipping_address = draft.address
        if draft.lines.differ:
            lines = await draft.lines.apply(change, draft.products, order.id)
            order.total = sum(line.total for line in lines)
        moved = order.status != current.status
        if moved and order.status == "CANCELLED":
            await _give_back(change, lines)
        updated = draft.lines.differ or msgspec.structs.replace(order, status=current.status) != current
        if updated or moved:
            order = await change.update(order)
        if updated:
            change.announce("order.updated", Order.plural, order.id)
        if moved:
            change.announce(f"order.{order.status.lower()}", Order.plural, order.id)
        head, row = self.statements.row(order), statements_of(LineItem).row
        return [head + row(line) for line in lines]

    async def delete(self, change: Change, current: Order) -> None:
        """Removes an order. A pending one gives its stock back; a fulfilled one cannot be removed.

        Raises `Final` for a fulfilled one.
        """
        if current.status == "FULFILLED":
            message = "A fulfilled order is an accounting record and cannot be deleted"
            raise Final(message)
        if current.status == "PENDING":
            await _give_back(change, await lines_of(change, current.id))
        await change.tx.run(orders.DELETE_LINES, order_id=current.id)
        await change.remove(current)
        change.announce("order.deleted", Order.plural, current.id)


class _Lines:
    """The lines that an order has and those it is to have. A line that is named by its id is retained.

    Of the lines to be, members that could not be read are None.
    """

    def __init__(self, old: Sequence[LineItem], new: Sequence[Any]) -> None:
        self.old = old
        self._by_id = {line.id: line for line in old}
        self._new = new
        self._retained = [self._retains(line) for line in new]
        retained_ids = [line.id for line in self._retained if line is not None]
        self.differ = retained_ids != list(self._by_id) or any(
            retained is None or own(retained) != own(line)
            for retained, line in zip(self._retained, new, strict=True)
        )
        self.before = stock.pieces_of((line.product_id, line.quantity) for line in old)
        self.after = stock.pieces_of(
            (line.product_id, line.quantity or 0) for line in new if line.product_id is not None
        )

    def _retains(self, line: Any) -> LineItem | None:
        old = self._by_id.get(line.id) if isinstance(line.id, str) else None
        return old if old is not None and old.product_id == line.product_id else None

    def errors(self, products: Products, currency: str | None) -> list[MemberError]:
        """The errors of the lines to be."""
        added = [
            (("line_items", i), line.product_id)
            for i, line in enumerate(self._new)
            if line.product_id is not None and self._retained[i] is None
        ]
        return [
            *self._duplicates(),
            *unorderable(products, added, currency),
            *_shortages(products, self._new, self.before),
            *self._unpayable(products),
        ]

    async def apply(self, change: Change, products: Products, order_id: str) -> list[LineItem]:
        """Changes the lines and the stock; returns the lines in their order."""
        product_ids = {*self.before, *self.after}
        await stock.take(
            change,
            products,
            {each: self.after.get(each, 0) - self.before.get(each, 0) for each in product_ids},
        )
        added = [
            new_line(change, order_id, products[line.product_id], own(line))
            for line, retained in zip(self._new, self._retained, strict=True)
            if retained is None
        ]
        retained_ids = {line.id for line in self._retained if line is not None}
        for line in self.old:
            if line.id not in retained_ids:
                await change.remove(line)
        lines = [
            await updated_line(change, retained, own(line))
            for line, retained in zip(self._new, self._retained, strict=True)
            if retained is not None
        ]
        await change.add_many(added)
        return sorted([*lines, *added], key=lambda line: line.id)

    def _unpayable(self, products: Products) -> list[MemberError]:
        return beyond_total(
            (products[line.product_id].price if retained is None else retained.unit_price)
            * (line.quantity or 0)
            for retained, line in zip(self._retained, self._new, strict=True)
            if retained is not None or line.product_id in products
        )

    def _duplicates(self) -> list[MemberError]:
        seen: set[str] = set()
        errors = []
        for i, line in enumerate(self._retained):
            if line is not None and line.id in seen:
                errors.append(MemberError(("line_items", i, "id"), "appears twice", "duplicate"))
            if line is not None:
                seen.add(line.id)
        return errors


@dataclass
class _OrderDraft:
    """An order to be: its errors, and what judging it has read."""

    errors: list[MemberError]
    lines: _Lines
    products: Products
    address: Any  # a snapshot as JSON, or None
    readdressed: bool = False


async def _judge_new(change: Change, values: Values) -> _OrderDraft:
    """Judges an order that is to be placed, as far as its members could be read."""
    lines = _Lines([], values.get("line_items", []))
    products, errors = await _products(change, values, lines)
    if values.get("status", "PENDING") != "PENDING":
        errors.append(MemberError(("status",), "must be PENDING in a new order", "invalid_transition"))
    address, address_errors = await _address(change, values.get("user_id"), values.get("shipping_address_id"))
    errors = [*errors, *address_errors, *lines.errors(products, None)]
    return _OrderDraft(errors, lines, products, address)


async def _judge_change(change: Change, order: Order, values: Values) -> _OrderDraft:
    """Judges what an order is to become, as far as its members could be read."""
    errors = []
    if values.get("user_id", order.user_id) != order.user_id:
        errors.append(MemberError(("user_id",), "cannot change", "immutable"))
    old = await lines_of(change, order.id)
    lines = _Lines(old, values.get("line_items", old))
    address_id = values.get("shipping_address_id", order.shipping_address_id)
    readdressed = address_id != order.shipping_address_id
    status = values.get("status", order.status)
    errors += _transition_errors(order.status, status, lines=lines.differ, readdressed=readdressed)
    address: str | None = None
    if readdressed:
        address, address_errors = await _address(change, order.user_id, address_id)
        errors += address_errors
    products: Products = {}
    if lines.differ and not is_final(order.status):
        products = await stock.lock(change, {*lines.before, *lines.after})
        errors += lines.errors(products, order.currency)
    return _OrderDraft(errors, lines, products, address, readdressed)


async def lines_of(change: Change, order_id: str) -> list[LineItem]:
    """The lines of an order, in their order."""
    rows = await change.tx.rows(orders.LINES, order_id=order_id)
    return [statements_of(LineItem).load(row) for row in rows]


def own(line: Any) -> dict[str, Any]:
    """The values that the body of an order gives a line, of a body or of the store."""
    return {name: getattr(line, name) for name in _WRITABLE}


def new_line(change: Change, order_id: str, product: LockedProduct, values: Values) -> LineItem:
    """A line with snapshots of the product as it is now."""
    return LineItem(
        id=change.new_id(),
        order_id=order_id,
        sku=product.sku,
        name=product.name,
        unit_price=product.price,
        currency=product.currency,
        total=product.price * values["quantity"],
        created_at=change.now_at,
        updated_at=change.now_at,
        **statements_of(LineItem).stored(values),
    )


async def updated_line(change: Change, line: LineItem, values: Values) -> LineItem:
    """The line with other values, at the price it was added for; it is stored if they differ."""
    new = msgspec.structs.replace(line, **statements_of(LineItem).stored(values))
    new.total = new.unit_price * new.quantity
    return line if new == line else await change.update(new)


def unorderable(
    products: Products, lines: Iterable[tuple[Path, str]], currency: str | None = None
) -> list[MemberError]:
    """The errors of lines whose product is unknown, archived or of another currency than the others."""
    errors = []
    for at, product_id in lines:
        product = products.get(product_id)
        if product is None or product.deleted_at is not None:
            errors.append(
                MemberError((*at, "product_id"), "must be the id of an existing product", "unknown")
            )
        elif product.status != "ACTIVE":
            errors.append(MemberError((*at, "product_id"), "names an archived product", "archived"))
        elif product.currency != (currency or product.currency):
            message = f"is priced in {product.currency}, the order in {currency}"
            errors.append(MemberError((*at, "product_id"), message, "currency_mismatch"))
        else:
            currency = product.currency
    return errors


def beyond_total(totals: Iterable[int], at: str = "line_items") -> list[MemberError]:
    """The error of line totals whose sum a JSON number cannot represent exactly."""
    if sum(totals) <= MAX_TOTAL:
        return []
    return [MemberError((at,), "makes the order's total larger than it can be", "out_of_range")]


def shortage(product: LockedProduct, pieces: int, at: Path) -> MemberError | None:
    """The error of too little stock for `pieces` more."""
    if product.stock is None or pieces <= product.stock:
        return None
    return MemberError(
        (*at, "quantity"),
        f"is more than the stock of {product.sku}, which is {product.stock}",
        "insufficient_stock",
    )


def _shortages(products: Products, lines: Sequence[Any], before: Mapping[str, int]) -> list[MemberError]:
    """The errors of the lines at which the stock runs out, counting the pieces that the order has already."""
    wanted: dict[str, int] = {}
    errors = []
    for i, line in enumerate(lines):
        wanted[line.product_id] = wanted.get(line.product_id, 0) + (line.quantity or 0)
        product = products.get(line.product_id)
        if product is not None:
            short = shortage(
                product, wanted[line.product_id] - before.get(line.product_id, 0), ("line_items", i)
            )
            errors.extend([short] if short else [])
    return errors


def _transition_errors(old: str, new: str, *, lines: bool, readdressed: bool) -> list[MemberError]:
    errors = []
    if new != old and new not in moves(old):
        allowed = " or ".join(sorted(moves(old))) or "nothing: it is final"
        message = f"cannot go from {old} to {new}; it can go to {allowed}"
        errors.append(MemberError(("status",), message, "invalid_transition"))
    if is_final(old):
        touched = [name for name, is_ in (("line_items", lines), ("shipping_address_id", readdressed)) if is_]
        errors += [MemberError((name,), f"cannot change: the order is {old}", "final") for name in touched]
    return errors


async def _products(change: Change, values: Values, lines: _Lines) -> tuple[Products, list[MemberError]]:
    """The products, locked, and the errors of the user. A key that acts for a user knows no other user."""
    if "user_id" not in values:
        return await stock.lock(change, lines.after), []
    products, status = await stock.lock_for(change, lines.after, values["user_id"])
    if status is None or change.caller.user_id not in (None, values["user_id"]):
        return products, [MemberError(("user_id",), "must be the id of an existing user", "unknown")]
    if status != "ACTIVE":
        return products, [MemberError(("user_id",), "names a deactivated user", "deactivated")]
    return products, []


async def _address(
    change: Change, user_id: str | None, address_id: str | None
) -> tuple[str | None, list[MemberError]]:
    """A snapshot of the address that an order is shipped to, as JSON."""
    if address_id is None or user_id is None:
        return None, []
    row = await change.tx.row(statements_of(Address).get, id=address_id)
    address = statements_of(Address).load(row) if row is not None else None
    if address is None or address.user_id != user_id:
        return None, [
            MemberError(("shipping_address_id",), "must be the id of one of the user's addresses", "unknown")
        ]
    snapshot = {each.json_name: getattr(address, each.name) for each in members(Address)}
    return msgspec.json.encode(snapshot).decode(), []


async def _give_back(change: Change, lines: Iterable[LineItem]) -> None:
    pieces = stock.pieces_of((line.product_id, line.quantity) for line in lines)
    products = await stock.lock(change, pieces)
    await stock.take(change, products, {product_id: -count for product_id, count in pieces.items()})
