"""`tradepost demo`: adds realistic demo data of any size."""

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from tradepost.cli.progress import show_progress
from tradepost.cli.store import OPERATOR, opened, source_of
from tradepost.demo.fill import Filling, Sizes, is_empty
from tradepost.perform import Performer
from tradepost.settings import Settings, load
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
    """Add realistic demo data to the database: users, products, and a year of orders.

    Parameters
    ----------
    users
        The number of users.
    products
        The number of products.
    orders
        The number of orders, each with one to five lines.
    seed
        The same seed produces the same data, except for ids and instants.
    if_empty
        Do nothing if the database has, or had, any user, product or order.
    """
    if orders and not (users and products):
        sys.exit("tradepost: orders need users and products: request at least one of each")
    sizes = Sizes(users, products, orders)
    filled = asyncio.run(_fill(load(), sizes, seed, if_empty=if_empty))
    counts = f"{users:,} users, {products:,} products, {orders:,} orders"
    print(f"demo: {counts} added" if filled else "demo: the database is not empty; nothing was added")


async def _fill(settings: Settings, sizes: Sizes, seed: int, *, if_empty: bool) -> bool:
    """Whether data was added."""
    async with opened(settings) as performer:
        if if_empty and not await is_empty(performer.database):
            return False
        await fill(performer, settings, sizes, seed)
        return True


async def fill(performer: Performer, settings: Settings, sizes: Sizes = DEFAULT, seed: int = _SEED) -> None:
    """Adds demo data to a database and shows the progress."""
    done: dict[str, int] = {}
    with show_progress("demo", sum(sizes)) as show:

        def added(what: str, count: int) -> None:
            done[what] = count
            show(sum(done.values()), sum(done.values()))

        await Filling(Loading(performer, OPERATOR, source_of(settings)), sizes, seed, added).run()
