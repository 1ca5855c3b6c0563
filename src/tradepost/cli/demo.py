"""`tradepost demo`: fills a database with believable data of any size."""

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from tradepost import settings
from tradepost.cli.progress import shown
from tradepost.cli.store import OPERATOR, opened, source_of
from tradepost.demo.fill import Filling, Sizes, is_empty
from tradepost.perform import Performer
from tradepost.settings import Settings
from tradepost.transfer.loading import Loading

Count = Annotated[int, Parameter(validator=Number(gte=0))]

DEFAULT = Sizes(50, 120, 200)
_SEED = 1


def demo(
    *,
    users: Count = DEFAULT.users,
    products: Count = DEFAULT.products,
    orders: Count = DEFAULT.orders,
    seed: int = _SEED,
    if_empty: bool = False,
) -> None:
    """Fill the database with believable data: people, goods, and a year of orders. More is added each time.

    Parameters
    ----------
    users
        How many users.
    products
        How many products.
    orders
        How many orders, of one to five lines.
    seed
        The same seed makes the same data, but for ids and instants.
    if_empty
        Do nothing if there is or was any user, product or order.
    """
    if orders and not (users and products):
        sys.exit("tradepost: orders need users and products of the same demo: make at least one of each")
    sizes = Sizes(users, products, orders)
    made = asyncio.run(_fill(settings.load(), sizes, seed, if_empty=if_empty))
    counts = f"{users:,} users, {products:,} products, {orders:,} orders"
    print(f"demo: {counts} added" if made else "demo: the database is not empty; nothing was added")


async def _fill(found: Settings, sizes: Sizes, seed: int, *, if_empty: bool) -> bool:
    async with opened(found) as performer:
        if if_empty and not await is_empty(performer.database):
            return False
        await fill(performer, found, sizes, seed)
        return True


async def fill(performer: Performer, found: Settings, sizes: Sizes = DEFAULT, seed: int = _SEED) -> None:
    """Fills a database, and shows how far it has come."""
    done: dict[str, int] = {}
    with shown("demo", sum(sizes)) as show:

        def made(what: str, count: int) -> None:
            done[what] = count
            show(sum(done.values()), sum(done.values()))

        await Filling(Loading(performer, OPERATOR, source_of(found)), sizes, seed, made).run()
