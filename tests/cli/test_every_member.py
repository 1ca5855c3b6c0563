"""Every writable member of what files hold survives an export and an import, in both formats."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import shop
from tests.cli.conftest import Commands
from tests.laws.values import World
from tests.service import Service
from tradepost.domain.address import Address
from tradepost.domain.input import Input, names_of
from tradepost.domain.order import Order
from tradepost.domain.product import Product
from tradepost.domain.record import Record
from tradepost.domain.user import User

KINDS: tuple[type[Record], ...] = (User, Product, Address, Order)


def filled(world: World, record: type[Record]) -> Any:
    """An item whose members all have values that are not their defaults."""
    taken = Input(record, names_of(record), patching=True).taken
    values = {each.json_name: world.value(each) for each in taken}
    path = world.path(record)
    later = {"status": values.pop("status")} if record is Order else {}
    made = world.service.made(path, {**world.body(record), **values})
    reply = world.service.call("PATCH", f"{path}/{made['id']}", later)
    shown = reply.json
    assert {name: shown[name] for name in values | later} == values | later
    assert all(shown[each.json_name] != each.default for each in taken)
    return shown


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_every_member_survives_an_export_and_an_import(
    engine: str,
    new_service: Callable[..., Service],
    commands: Callable[[str], Commands],
    tmp_path: Path,
    form: str,
) -> None:
    """What the API shows of an item is what it shows after an import elsewhere, but for when it last changed."""
    service, other, tradepost = new_service(engine), new_service(engine), commands(engine)
    world = World(service)
    items = {record: filled(world, record) for record in KINDS}
    for record in KINDS:
        file = tmp_path / f"{record.plural}.{form}"
        for words, place in (("export", service), ("import", other)):
            tradepost.url = place.database_url
            tradepost.done(words, record.plural, file)
    for record, item in items.items():
        shown = shop.get(other, f"{world.path(record)}/{item['id']}")
        assert _lasting(shown) == _lasting(item)


def _lasting(item: Any) -> Any:
    """An item without the instants of its last changes, which an import does not keep."""
    if isinstance(item, dict):
        return {name: _lasting(value) for name, value in item.items() if name != "updatedAt"}
    return [_lasting(each) for each in item] if isinstance(item, list) else item
