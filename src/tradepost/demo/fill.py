"""Adds users, products and orders to a database, by the same code as an import."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from tradepost.clock import instant
from tradepost.demo.goods import Goods
from tradepost.demo.people import People
from tradepost.demo.trade import Bought, Trade
from tradepost.domain.input import Values
from tradepost.storage.database import Database
from tradepost.storage.statements import counts
from tradepost.transfer.addresses import AddressKind
from tradepost.transfer.kind import Entry, Kind
from tradepost.transfer.loading import Loading, batches
from tradepost.transfer.orders import OrderKind
from tradepost.transfer.row import Born
from tradepost.transfer.simple import products, users

# Shares of all users.
_DEACTIVATED = 0.03
_WITH_ADDRESS = 0.7
_WITH_SECOND_ADDRESS = 0.2  # of those with an address

# Called with what is being added, and how many were added so far.
Show = Callable[[str, int], None]


class Sizes(NamedTuple):
    """The number of entities to add."""

    users: int
    products: int
    orders: int


async def is_empty(database: Database) -> bool:
    """Whether the database never had a user, product or order."""
    return await database.reading().row(counts.ANYTHING) is None


@dataclass
class Filling:
    """One run. The same seed adds the same data to the same database, except for ids and instants."""

    loading: Loading
    sizes: Sizes
    seed: int
    show: Show

    async def run(self) -> None:
        """Adds everything."""
        reading = self.loading.performer.database.reading()
        rows = await reading.row(counts.USERS), await reading.row(counts.PRODUCTS)
        user_count, product_count = (row[0] if row else 0 for row in rows)
        self._random = Random(self.seed)  # noqa: S311 (the data is no secret)
        self._trade = Trade(self._random, self.loading.performer.clock.now_ms())
        self._users: list[str] = []
        self._homes: list[str | None] = []  # the id of an address of each user
        self._products: list[str] = []
        await self._fill_users(People(self._random, user_count))
        await self._fill("products", products(), self._goods(Goods(self._random, product_count)))
        self._order_kind = OrderKind()
        await self._fill("orders", self._order_kind, self._orders())

    async def _fill_users(self, people: People) -> None:
        """Adds users batch by batch, each followed by its addresses, which need their users to exist."""
        kind, addresses, added = users(), AddressKind(), 0
        homes: list[Entry] = []
        for batch in batches(self._people(people, homes)):
            await self.loading.write(kind, batch)
            if homes:
                await self.loading.write(addresses, homes)
            homes.clear()
            added += len(batch)
            self.show("users", added)

    async def _fill(self, what: str, kind: Kind, entries: Iterable[Entry]) -> None:
        added = 0
        for batch in batches(entries):
            await self.loading.write(kind, batch)
            added += len(batch)
            self.show(what, added)

    def _people(self, people: People, homes: list[Entry]) -> Iterator[Entry]:
        draw, total = self._random, self.sizes.users
        for index in range(total):
            born = _born(self._trade.arrived_ms(index, total))
            person = people.person()
            user_id = self._new_id(born)
            status = "DEACTIVATED" if draw.random() < _DEACTIVATED else "ACTIVE"
            self._users.append(user_id)
            self._trade.buyer(born.ms, person.country.currency)
            count = (1 + (draw.random() < _WITH_SECOND_ADDRESS)) if draw.random() < _WITH_ADDRESS else 0
            ids = [self._new_id(born) for _ in range(count)]
            self._homes.append(ids[0] if ids else None)
            for address_id in ids:
                home = people.home(person.country)._asdict()
                own = {"id": address_id, "user_id": user_id, "user_email": None, "recipient": person.name}
                homes.append(Entry({**own, **home}, born))
            names = {"name": person.name, "email": person.email}
            yield Entry({"id": user_id, **names, "status": status, "deleted_at": None}, born)

    def _goods(self, goods: Goods) -> Iterator[Entry]:
        count = self.sizes.products
        for index in range(count):
            born = _born(self._trade.arrived_ms(index, count))
            good = goods.good()
            product_id = self._new_id(born)
            self._products.append(product_id)
            self._trade.good(index, born.ms, good.currency)
            yield Entry({"id": product_id, **good._asdict(), "deleted_at": None}, born)

    def _orders(self) -> Iterator[Entry]:
        count = self.sizes.orders if self._users and self._products else 0
        for index in range(count):
            bought = self._trade.order(index, count)
            yield Entry(self._order(bought), _born(bought.at_ms), 2 + len(bought.goods))

    def _order(self, bought: Bought) -> Values:
        order = self._order_kind.input
        line: Any = order.child.struct if order.child else None
        return order.defaults | {
            "user_id": self._users[bought.buyer],
            "status": bought.status,
            "shipping_address_id": self._homes[bought.buyer] if bought.shipped else None,
            "line_items": [
                line(product_id=self._products[good], quantity=pieces) for good, pieces in bought.goods
            ],
        }

    def _new_id(self, born: Born) -> str:
        return self.loading.performer.ids.new(born.ms)


def _born(ms: int) -> Born:
    return Born(ms, instant(ms))
