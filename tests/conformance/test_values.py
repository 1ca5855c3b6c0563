"""Values come back as they went in, and texts sort by their bytes, on both engines alike."""

from collections.abc import Callable
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shop
from tests.conformance.store import ADD_PRODUCT, ADD_USER, Store, product_row, user_row
from tradepost.domain.product import Product
from tradepost.domain.user import User
from tradepost.storage.database import Writing
from tradepost.storage.record_statements import Condition, Listing, Operator, statements_of

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
# Pairs that other orders than that of the bytes put the wrong way round: of a locale, of UTF-16, without case.
TRAPS = [
    "a",
    "B",
    "b",
    "Z",
    "z",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "Ω",
    "\uffee",
    "\U00010000",
    "😀",
    "a ",
    "a",
    " a",
    "_",
    "-",
]


def _add_users(store: Store, names: list[str]) -> str:
    """Users with these names; the status that marks them as those of this call."""
    mark = shop.unique()

    async def work(tx: Writing) -> None:
        await tx.many(ADD_USER, [user_row(name=name, status=mark) for name in names])

    store.write(work)
    return mark


def _names(store: Store, mark: str, *, descending: bool = False, **more: Any) -> list[str]:
    conditions = (Condition("status", "eq", "mark"), *more.pop("conditions", ()))
    listing = Listing(sort="name", descending=descending, conditions=conditions)
    rows = store.read(statements_of(User).page(listing), mark=mark, limit=1000, **more)
    return [row[statements_of(User).names.index("name")] for row in rows]


@settings(max_examples=25)
@given(names=st.lists(TEXTS | st.sampled_from(TRAPS), min_size=1, max_size=12))
def test_texts_sort_by_their_bytes(store: Store, names: list[str]) -> None:
    """Whatever the script, the case and the plane: the order is that of the bytes in UTF-8, up and down."""
    mark = _add_users(store, names)
    assert _names(store, mark) == sorted(names, key=str.encode)
    assert _names(store, mark, descending=True) == sorted(names, key=str.encode, reverse=True)


@settings(max_examples=25)
@given(names=st.lists(TEXTS | st.sampled_from(TRAPS), min_size=1, max_size=8), limit=TEXTS)
def test_texts_compare_by_their_bytes(store: Store, names: list[str], limit: str) -> None:
    """Ranges and equality of texts are those of their bytes: no case, no accents, no trailing spaces forgiven."""
    mark = _add_users(store, names)
    operators: dict[Operator, Callable[[bytes, bytes], bool]] = {
        "eq": eq,
        "gte": ge,
        "gt": gt,
        "lte": le,
        "lt": lt,
    }
    for operator, compares in operators.items():
        for each in (limit, names[0]):
            found = _names(store, mark, conditions=(Condition("name", operator, "bound"),), bound=each)
            expected = [name for name in names if compares(name.encode(), each.encode())]
            assert found == sorted(expected, key=str.encode), operator


def test_the_traps_sort_by_their_bytes(store: Store) -> None:
    """The pairs at which locales and encodings part, in the order of their bytes."""
    mark = _add_users(store, TRAPS)
    assert _names(store, mark) == sorted(TRAPS, key=str.encode)


@given(text=TEXTS)
def test_texts_come_back_as_they_went_in(store: Store, text: str) -> None:
    """No text is changed on its way: no normalisation, no trimming, no escaping."""
    mark = _add_users(store, [text])
    assert _names(store, mark) == [text]


@pytest.mark.parametrize("number", [0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63)])
def test_integers_have_64_bits(store: Store, number: int) -> None:
    """Integers are whole up to 64 bits, and sort by value."""
    product = product_row(price=number, stock=None)

    async def work(tx: Writing) -> Any:
        await tx.run(ADD_PRODUCT, **product)
        return await tx.row(statements_of(Product).get, id=product["id"])

    row = dict(zip(statements_of(Product).names, store.write(work), strict=True))
    assert (row["price"], row["stock"], row["description"]) == (number, None, None)
    assert type(row["price"]) is int


def test_the_letters_of_statements_are_no_part_of_them(store: Store) -> None:
    """Quotes, colons, percent and dollar signs in values stay values."""
    names = ["'; DROP TABLE users; --", "%s", ":name", "$1", "?", "\\", '"', "{}", "''"]
    mark = _add_users(store, names)
    assert _names(store, mark) == sorted(names, key=str.encode)
