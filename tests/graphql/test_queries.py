"""Queries: what is read says what REST says, in the types of the schema; pages are walked, products found."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shop
from tests.graphql.asking import Answered, ask, got
from tests.service import Service

SCALARS = {
    "user": "id name email status createdAt updatedAt",
    "product": "id sku name description price currency stock status createdAt updatedAt",
    "order": "id total currency status createdAt updatedAt",
}
LINE = "id quantity unitPrice total sku name"
ADDRESS = "id recipient line1 line2 city region postalCode country"
PAGE = (
    "pageInfo { hasNextPage hasPreviousPage startCursor endCursor } edges { cursor node { id } } nodes { id }"
)
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def one(service: Service, kind: str, item_id: str, selected: str = "", **headers: Any) -> Any:
    query = f"query($id: ID!) {{ {kind}(id: $id) {{ {selected or SCALARS[kind]} }} }}"
    return got(service, query, {"id": item_id}, **headers)[kind]


def shown(item: Any, names: str) -> Any:
    return {name: item[name] for name in names.split()}


# --- items ---


def test_an_item_says_what_rest_says(service: Service) -> None:
    """Every member of a user, product, order, line item and address has the value and the type it has in REST."""
    user = shop.a_user(service, name="Зоя", status="ACTIVE")
    product = shop.a_product(service, price=19.99, currency="EUR", description="d", stock=None)
    address = shop.an_address(service, user, line2="2nd floor")
    order = shop.an_order(service, (product, 3), user=user, shippingAddressId=address["id"])
    product = shop.get(service, f"/v1/products/{product['id']}")
    assert one(service, "user", user["id"]) == shown(user, SCALARS["user"])
    assert one(service, "product", product["id"]) == shown(product, SCALARS["product"])
    assert one(service, "order", order["id"]) == shown(order, SCALARS["order"])
    below = one(
        service,
        "order",
        order["id"],
        f"shippingAddress {{ {ADDRESS} }} user {{ id name }} lineItems {{ {LINE} product {{ id }} }}",
    )
    assert below["shippingAddress"] == shown(order["shippingAddress"], ADDRESS)
    assert below["user"] == {"id": user["id"], "name": "Зоя"}
    (line,) = order["lineItems"]
    assert below["lineItems"] == [shown(line, LINE) | {"product": {"id": product["id"]}}]
    kept = one(service, "user", user["id"], f"addresses {{ nodes {{ {ADDRESS} }} }}")
    assert kept["addresses"]["nodes"] == [shown(address, ADDRESS)]
    assert all(INSTANT.fullmatch(order[name]) for name in ("createdAt", "updatedAt"))


def test_line_items_keep_their_order(service: Service) -> None:
    """Lines stand as they were ordered, the same product twice as two."""
    first, other = shop.a_product(service), shop.a_product(service)
    order = shop.an_order(service, (other, 3), (first, 1), (other, 2))
    lines = one(service, "order", order["id"], "lineItems { quantity product { id } }")["lineItems"]
    assert [(line["product"]["id"], line["quantity"]) for line in lines] == [
        (other["id"], 3),
        (first["id"], 1),
        (other["id"], 2),
    ]


@pytest.mark.parametrize("kind", list(SCALARS))
@pytest.mark.parametrize(
    "item_id",
    ["", "nope", "1", "01900000-0000-7000-8000-000000000000", "é", "' OR 1=1 --", "x" * 5000],
)
def test_an_id_that_names_nothing_reads_as_null(service: Service, kind: str, item_id: str) -> None:
    """Whatever the text is, there is no error: the field is null."""
    assert one(service, kind, item_id) is None


def test_an_id_of_another_kind_names_nothing(service: Service) -> None:
    """An order's id is no user's."""
    order = shop.an_order(service)
    assert one(service, "user", order["id"]) is None
    assert one(service, "product", order["id"]) is None


def test_an_id_may_be_a_number(service: Service) -> None:
    """The type ID takes integers too, which are no id of ours."""
    assert got(service, "{ user(id: 7) { id } }") == {"user": None}
    assert got(service, "query($id: ID!) { user(id: $id) { id } }", {"id": 7}) == {"user": None}


def test_what_is_deleted_reads_as_null(service: Service) -> None:
    """A deleted user, product or order is null by its id and in no list; an order keeps its snapshots."""
    user, product = shop.a_user(service), shop.a_product(service, name="Gone lamp", price=3)
    order, other = shop.an_order(service, (product, 2), user=user), shop.an_order(service, (product, 1))
    for path in (f"users/{user['id']}", f"products/{product['id']}", f"orders/{other['id']}"):
        assert service.call("DELETE", f"/v1/{path}").status == 204
    assert one(service, "user", user["id"]) is None
    assert one(service, "product", product["id"]) is None
    assert one(service, "order", other["id"]) is None
    selected = "total user { id } lineItems { name sku unitPrice product { id } }"
    assert one(service, "order", order["id"], selected) == {
        "total": 6,
        "user": None,
        "lineItems": [{"name": "Gone lamp", "sku": product["sku"], "unitPrice": 3, "product": None}],
    }
    assert found(service, ids=[product["id"]]) == []


def test_one_of_many_may_be_gone(service: Service) -> None:
    """Among line items of one order, only those whose product is deleted have none."""
    kept, gone = shop.a_product(service), shop.a_product(service)
    order = shop.an_order(service, (gone, 1), (kept, 1), (gone, 1))
    service.call("DELETE", f"/v1/products/{gone['id']}")
    lines = one(service, "order", order["id"], "lineItems { product { id } }")["lineItems"]
    assert [line["product"] for line in lines] == [None, {"id": kept["id"]}, None]


@pytest.mark.parametrize(
    ("price", "quantity", "currency", "total"),
    [
        (0.1, 3, "EUR", "0.3"),
        (19.99, 3, "EUR", "59.97"),
        (0.07, 10_000, "EUR", "700.0"),
        (1.005, 3, "KWD", "3.015"),
        (980, 7, "JPY", "6860.0"),
        (999_999_999.99, 900, "USD", "899999999991.0"),
        (0, 5, "EUR", "0.0"),
    ],
)
def test_money_is_never_added_in_binary(
    service: Service, price: float, quantity: int, currency: str, total: str
) -> None:
    """A total is the decimal sum, written with as many digits as it has."""
    product = shop.a_product(service, price=price, currency=currency, stock=None)
    order = shop.an_order(service, (product, quantity))
    query = "query($id: ID!) { order(id: $id) { total lineItems { unitPrice total } } }"
    answered = ask(service, query, {"id": order["id"]})
    assert f'"total":{total},' in answered.reply.body.decode()
    assert answered.sound["order"]["lineItems"] == [{"unitPrice": price, "total": float(total)}]


@pytest.mark.parametrize("kind", list(SCALARS))
def test_an_etag_is_good_in_rest_and_the_other_way_round(service: Service, kind: str) -> None:
    """`etag` works in If-Match; REST's ETag in `ifMatch`; both name a state, and no other."""
    make = {"user": shop.a_user, "product": shop.a_product, "order": shop.an_order}[kind]
    item = make(service)
    path = f"/v1/{kind}s/{item['id']}"
    changes = [{"status": "FULFILLED"}] if kind == "order" else [{"name": "One"}, {"name": "Two"}]
    before = one(service, kind, item["id"], "etag")["etag"]
    assert service.call("PATCH", path, changes[-1], if_match='"7.graphql"').status == 412
    changed = service.call("PATCH", path, changes[-1], if_match=before)
    assert changed.status == 200
    assert service.call("PATCH", path, changes[0], if_match=before).status == 412
    after = one(service, kind, item["id"], "etag")["etag"]
    assert after != before
    name, given = (
        ("cancelOrder", "") if kind == "order" else (f"update{kind.title()}", ', input: {name: "3"}')
    )
    query = f"mutation($id: ID!, $tag: String) {{ {name}(id: $id{given}, ifMatch: $tag) {{ id etag }} }}"
    for stale in (before, shop.get(service, path) and '"1"'):
        assert ask(service, query, {"id": item["id"], "tag": stale}).codes == ["CONFLICT"]
    current = service.get(path).headers["etag"]
    answered = ask(service, query, {"id": item["id"], "tag": current})
    assert answered.codes == (["INVALID_TRANSITION"] if kind == "order" else [])


# --- connections ---


@pytest.fixture(scope="module")
def many(service: Service) -> Any:
    """A user with 105 orders and 21 addresses, in the order in which they were made."""
    user, product = shop.a_user(service), shop.a_product(service, stock=None)
    made = service.calls(*[("POST", "/v1/orders", shop.order_body(user, (product, 1)))] * 105)
    for _ in range(21):
        shop.an_address(service, user)
    return {
        "user": user,
        "orders": sorted(reply.json["id"] for reply in made),
        "key": service.new_key("admin", user=user["id"]),
    }


def orders_of(service: Service, user_id: str, arguments: str = "", selected: str = PAGE) -> Any:
    query = f"query($id: ID!) {{ user(id: $id) {{ orders{arguments} {{ {selected} }} }} }}"
    return got(service, query, {"id": user_id})["user"]["orders"]


@pytest.mark.parametrize(
    ("arguments", "length"),
    [
        ("", 20),
        ("(first: null)", 20),
        ("(first: 0)", 0),
        ("(first: 1)", 1),
        ("(first: 100)", 100),
        ("(first: 101)", 100),
        ("(first: 2147483647)", 100),
        ("(after: null)", 20),
    ],
)
def test_a_page_is_as_long_as_asked(service: Service, many: Any, arguments: str, length: int) -> None:
    """20 unless told, 100 at most, 0 if so asked; `nodes` and `edges` hold the same, with their cursors."""
    page = orders_of(service, many["user"]["id"], arguments)
    ids = [node["id"] for node in page["nodes"]]
    assert ids == many["orders"][:length]
    assert [edge["node"]["id"] for edge in page["edges"]] == ids
    cursors = [edge["cursor"] for edge in page["edges"]]
    assert page["pageInfo"] == {
        "hasNextPage": True,
        "hasPreviousPage": False,
        "startCursor": cursors[0] if cursors else None,
        "endCursor": cursors[-1] if cursors else None,
    }


def test_the_last_page_says_so(service: Service, many: Any) -> None:
    """`hasNextPage` is whether there is more, on the last page, a full last page and behind it."""
    user_id, orders = many["user"]["id"], many["orders"]
    first = orders_of(service, user_id, "(first: 100)")
    after = first["pageInfo"]["endCursor"]
    for asked, length, more in ((4, 4, True), (5, 5, False), (6, 5, False)):
        page = orders_of(service, user_id, f'(first: {asked}, after: "{after}")')
        assert [node["id"] for node in page["nodes"]] == orders[100 : 100 + length]
        assert page["pageInfo"]["hasNextPage"] is more
        assert page["pageInfo"]["hasPreviousPage"] is True
    behind = orders_of(service, user_id, f'(after: "{page["pageInfo"]["endCursor"]}")')
    assert behind == {
        "edges": [],
        "nodes": [],
        "pageInfo": {"hasNextPage": False, "hasPreviousPage": True, "startCursor": None, "endCursor": None},
    }


def test_a_parent_with_nothing_has_an_empty_page(service: Service) -> None:
    """No orders are a page without any, never null."""
    user = shop.a_user(service)
    assert orders_of(service, user["id"], selected=f"totalCount {PAGE}") == {
        "totalCount": 0,
        "edges": [],
        "nodes": [],
        "pageInfo": {"hasNextPage": False, "hasPreviousPage": False, "startCursor": None, "endCursor": None},
    }


CONNECTIONS = {
    "users": "{{ users{} {{ {} }} }}",
    "orders": "{{ orders{} {{ {} }} }}",
    "user.orders": "{{ users(first: 1) {{ nodes {{ orders{} {{ {} }} }} }} }}",
    "user.addresses": "{{ users(first: 1) {{ nodes {{ addresses{} {{ {} }} }} }} }}",
}


@pytest.mark.parametrize("query", CONNECTIONS.values(), ids=CONNECTIONS)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("(first: -1)", "first"),
        ("(first: -2147483648)", "first"),
        ('(after: "x")', "after"),
        ('(after: "")', "after"),
    ],
)
def test_a_page_that_cannot_be_is_refused(service: Service, query: str, arguments: str, named: str) -> None:
    """A negative length and a cursor that nobody gave out are BAD_USER_INPUT, naming the argument."""
    shop.a_user(service)
    answered = ask(service, query.format(arguments, "nodes { id }"))
    assert answered.codes == ["BAD_USER_INPUT"]
    assert answered.fields == [named]
    assert answered.data is None or list(answered.data.values()) == [None]


@pytest.mark.parametrize(("arguments", "named"), [("first: -1", "first"), ('after: "x"', "after")])
def test_products_refuse_such_pages_too(service: Service, arguments: str, named: str) -> None:
    """The plain list keeps the same rules."""
    answered = ask(service, f"{{ products({arguments}) {{ id }} }}")
    assert (answered.codes, answered.fields) == (["BAD_USER_INPUT"], [named])


@pytest.mark.parametrize("query", CONNECTIONS.values(), ids=CONNECTIONS)
def test_all_are_counted_only_when_asked_for(service: Service, many: Any, query: str) -> None:
    """`totalCount` takes one statement more, and none where it is not asked for; `first: 0` counts too."""
    without = ask(service, query.format("", PAGE))
    counted = ask(service, query.format("", f"totalCount {PAGE}"))
    assert not without.errors
    assert counted.cost["statements"] == without.cost["statements"] + 1
    assert (
        ask(service, query.format("(first: 0)", "totalCount")).cost["statements"]
        == counted.cost["statements"]
    )


def test_all_are_counted_across_pages(service: Service, many: Any) -> None:
    """`totalCount` is of the whole list, whatever page is shown; of what is the caller's for a user's key."""
    user_id = many["user"]["id"]
    for arguments in ("", "(first: 0)", "(first: 3)", f'(after: "{many["orders"][50]}")'):
        assert orders_of(service, user_id, arguments, "totalCount") == {"totalCount": 105}
    query = "{ users { totalCount } orders(first: 2) { totalCount nodes { id } } }"
    assert got(service, query, key=many["key"]) == {
        "users": {"totalCount": 1},
        "orders": {"totalCount": 105, "nodes": [{"id": each} for each in many["orders"][:2]]},
    }


WALKS = ("user.orders", "orders", "products")


@pytest.mark.parametrize("walk", WALKS)
@settings(max_examples=8)
@given(
    there=st.integers(0, 7),
    length=st.integers(1, 4),
    between=st.lists(
        st.lists(st.tuples(st.sampled_from(["add", "remove"]), st.integers(0, 9)), max_size=3), max_size=5
    ),
)
def test_a_walk_shows_everything_once(
    service: Service, walk: str, there: int, length: int, between: list[list[tuple[str, int]]]
) -> None:
    """Page by page, what was there throughout is shown exactly once, whatever comes and goes meanwhile."""
    shelf = Shelf(service, walk)
    for _ in range(there):
        shelf.add()
    throughout, seen, after = set(shelf.there), [], None
    for turn in range(40):
        page, after = shelf.page(length, after)
        seen += page
        for change, index in between[turn] if turn < len(between) else ():
            if change == "add":
                shelf.add()
            elif shelf.there:
                throughout.discard(shelf.remove(index % len(shelf.there)))
        if after is None:
            break
    else:
        raise AssertionError("the walk has no end")
    assert len(seen) == len(set(seen))
    assert throughout <= set(seen)
    assert seen == sorted(seen)


class Shelf:
    """A list to be walked that changes: a user's orders, from above or with the user's own key, or products."""

    def __init__(self, service: Service, walk: str) -> None:
        self._service = service
        self._walk = walk
        self._user = shop.a_user(service)
        self._mark = shop.unique()
        self._lamp = None if walk == "products" else shop.a_product(service, stock=None)
        self._key = service.new_key("admin", user=self._user["id"]) if walk == "orders" else ""
        self.there: list[str] = []

    def add(self) -> None:
        if self._walk == "products":
            made = shop.a_product(self._service, name=self._mark)
        else:
            made = shop.an_order(self._service, (self._lamp, 1), user=self._user)
        self.there.append(made["id"])

    def remove(self, index: int) -> str:
        item_id = self.there.pop(index)
        kind = "products" if self._walk == "products" else "orders"
        assert self._service.call("DELETE", f"/v1/{kind}/{item_id}").status == 204
        return item_id

    def page(self, length: int, after: str | None) -> tuple[list[str], str | None]:
        """The ids on a page, and the cursor of the next if there is one."""
        if self._walk == "products":
            ids = [each["id"] for each in found(self._service, length, after, search=self._mark)]
            return ids, ids[-1] if len(ids) == length else None
        given = {"id": self._user["id"], "first": length, "after": after}
        page = "orders(first: $first, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } }"
        if self._walk == "orders":
            del given["id"]
            query = f"query($first: Int, $after: String) {{ {page} }}"
            connection = got(self._service, query, given, key=self._key)["orders"]
        else:
            query = f"query($id: ID!, $first: Int, $after: String) {{ user(id: $id) {{ {page} }} }}"
            connection = got(self._service, query, given)["user"]["orders"]
        info = connection["pageInfo"]
        ids = [node["id"] for node in connection["nodes"]]
        return ids, info["endCursor"] if info["hasNextPage"] else None


def test_a_walk_goes_on_behind_what_was_deleted(service: Service) -> None:
    """A cursor stays good when its item is gone."""
    user = shop.a_user(service)
    product = shop.a_product(service)
    ids = [shop.an_order(service, (product, 1), user=user)["id"] for _ in range(4)]
    cursor = orders_of(service, user["id"], "(first: 2)")["pageInfo"]["endCursor"]
    service.call("DELETE", f"/v1/orders/{ids[1]}")
    page = orders_of(service, user["id"], f'(first: 2, after: "{cursor}")')
    assert [node["id"] for node in page["nodes"]] == ids[2:]


# --- products ---


def ask_for(
    service: Service, first: int | None = None, after: str | None = None, /, **filter_: Any
) -> Answered:
    query = """query($filter: ProductFilter, $first: Int, $after: ID) {
      products(filter: $filter, first: $first, after: $after) { id name price stock }
    }"""
    return ask(service, query, {"filter": filter_, "first": first, "after": after})


def found(service: Service, first: int | None = None, after: str | None = None, /, **filter_: Any) -> Any:
    return ask_for(service, first, after, **filter_).sound["products"]


NAMES = (
    "Lamp 100%",
    "lamp_shade",
    "LampXshade",
    "back\\slash",
    "Étagère",
    "ÉTAGÈRE DELUXE",
    "Жук-фонарь",
    "ΛΆΜΠΑ",
    "Straße",
    "naïve ''quotes\"",
    "Ĉiam",
    "Lumière 💡",
)
PRICES = (0, 0.01, 0.1, 0.29, 0.3, 1.1, 19.99, 20, 4.35, 1_000_000_000)
STOCKS = (None, 0, 1, 7)


@pytest.fixture(scope="module")
def stocked(engine: str, new_service: Callable[..., Service]) -> tuple[Service, list[Any]]:
    """A shop of its own with 210 products, of which some were deleted; those that are left, the oldest first."""
    service = new_service(engine)
    bodies = [
        shop.product_body(
            name=f"{NAMES[n % len(NAMES)]} {n % 5}",
            price=PRICES[n % len(PRICES)],
            currency=("EUR", "USD", "KWD")[n % 3],
            stock=STOCKS[n % 4],
            status="ARCHIVED" if n % 7 == 0 else "ACTIVE",
        )
        for n in range(210)
    ]
    made = [reply.json for reply in service.calls(*[("POST", "/v1/products", body) for body in bodies])]
    for each in made[200:204]:
        service.call("DELETE", f"/v1/products/{each['id']}")
    return service, sorted(made[:200] + made[204:], key=lambda each: each["id"])


def fits(product: Any, filter_: dict[str, Any]) -> bool:
    """What a ProductFilter says, in Python."""
    price = Decimal(str(product["price"]))
    said: dict[str, Callable[[Any], bool]] = {
        "ids": lambda wanted: product["id"] in wanted,
        "sku": lambda wanted: product["sku"] == wanted,
        "status": lambda wanted: product["status"] == wanted,
        "currency": lambda wanted: product["currency"] == wanted,
        "search": lambda wanted: wanted.lower() in product["name"].lower(),
        "priceMin": lambda wanted: price >= Decimal(repr(wanted)),
        "priceMax": lambda wanted: price <= Decimal(repr(wanted)),
        "inStock": lambda wanted: (product["stock"] != 0) is wanted,
    }
    return all(said[name](wanted) for name, wanted in filter_.items() if wanted is not None)


near = st.sampled_from(PRICES).flatmap(
    lambda price: st.sampled_from([0, 1e-9, -1e-9, 0.004, 0.00005, -0.00005, 5e-324]).map(
        lambda by: price + by
    )
)
awkward = st.one_of(
    near,
    st.floats(-5, 30),
    st.sampled_from([0.1 + 0.2, -0.0, 1e308, -1e308, 5e-324, 2.0**63, 1e9 + 0.01, 0.1 * 3, 1.1 * 1.1]),
)
parts = st.one_of(
    st.sampled_from(NAMES)
    .flatmap(
        lambda name: st.tuples(st.integers(0, len(name)), st.integers(0, len(name))).map(
            lambda ends: name[min(ends) : max(ends)]
        )
    )
    .flatmap(lambda part: st.sampled_from([part, part.upper(), part.lower(), part.swapcase()])),
    st.text("%_\\*?[]'é", max_size=3),
)


@settings(max_examples=60)
@given(data=st.data())
def test_a_filter_finds_what_it_says(stocked: tuple[Service, list[Any]], data: st.DataObject) -> None:
    """Whatever is combined, exactly the products that fit it all are found, in the order they were made."""
    service, products = stocked
    some = st.sampled_from(products)
    filter_ = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ids": st.lists(some.map(lambda each: each["id"]) | st.just("nope"), max_size=60),
                "sku": some.map(lambda each: each["sku"]) | st.just("nope"),
                "status": st.sampled_from(["ACTIVE", "ARCHIVED"]),
                "currency": st.sampled_from(["EUR", "USD", "KWD", "JPY", "eur", ""]),
                "search": parts,
                "priceMin": awkward,
                "priceMax": awkward,
                "inStock": st.booleans(),
            },
        )
    )
    expected = [each["id"] for each in products if fits(each, filter_)]
    assert [each["id"] for each in found(service, 200, **filter_)] == expected[:200]


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("%", {"Lamp 100%"}),
        ("_", {"lamp_shade"}),
        ("\\", {"back\\slash"}),
        ("0%", {"Lamp 100%"}),
        ("étagère", {"Étagère", "ÉTAGÈRE DELUXE"}),
        ("ÉTAGÈRE", {"Étagère", "ÉTAGÈRE DELUXE"}),
        ("жУК", {"Жук-фонарь"}),
        ("λάμπα", {"ΛΆΜΠΑ"}),
        ("STRAßE", {"Straße"}),
        ("ĉIAM", {"Ĉiam"}),
        ("💡", {"Lumière 💡"}),
        ("''", {"naïve ''quotes\""}),
        ("lamp", {"Lamp 100%", "lamp_shade", "LampXshade"}),
        ("lamp%shade", set()),
        ("", set(NAMES)),
        ("x" * 201, set()),
        ("x" * 60_000, set()),
        ("%" * 30_000, set()),
    ],
)
def test_a_search_is_a_part_of_the_name_in_any_case(
    stocked: tuple[Service, list[Any]], search: str, names: set[str]
) -> None:
    """No character is a wildcard, letters of all scripts have their cases, and no length is too much."""
    service, _ = stocked
    assert {each["name"].rpartition(" ")[0] for each in found(service, 200, search=search)} == names


@pytest.mark.parametrize(
    ("first", "length"), [(None, 50), (0, 0), (1, 1), (200, 200), (201, 200), (2**31 - 1, 200)]
)
def test_a_list_of_products_is_bounded(
    stocked: tuple[Service, list[Any]], first: int | None, length: int
) -> None:
    """50 unless told, 200 at most."""
    service, products = stocked
    assert [each["id"] for each in found(service, first)] == [each["id"] for each in products[:length]]


def test_the_rest_of_the_products_is_behind_the_last_one(stocked: tuple[Service, list[Any]]) -> None:
    """`after` is the id of the last product seen; it may be gone, and need not fit the filter."""
    service, products = stocked
    assert [each["id"] for each in found(service, 200, products[199]["id"])] == [
        each["id"] for each in products[200:]
    ]
    archived = next(each for each in products if each["status"] == "ARCHIVED")
    behind = [each["id"] for each in products if each["status"] == "ACTIVE" and each["id"] > archived["id"]]
    assert [each["id"] for each in found(service, 200, archived["id"], status="ACTIVE")] == behind[:200]


def test_what_is_null_is_not_asked_for(stocked: tuple[Service, list[Any]]) -> None:
    """A filter whose members are null, an empty one, a null one and none are the same."""
    service, products = stocked
    nothing: dict[str, Any] = dict.fromkeys(
        ("ids", "sku", "status", "currency", "search", "priceMin", "priceMax", "inStock")
    )
    every = [each["id"] for each in products[:50]]
    assert [each["id"] for each in found(service, **nothing)] == every
    for arguments in ("", "(filter: {})", "(filter: null)", "(first: null, after: null)"):
        listed = got(service, f"{{ products{arguments} {{ id }} }}")["products"]
        assert [each["id"] for each in listed] == every


def test_no_ids_are_no_products(stocked: tuple[Service, list[Any]]) -> None:
    """An empty list of ids fits nothing; one id twice is one product."""
    service, products = stocked
    assert found(service, ids=[]) == []
    assert len(found(service, ids=[products[0]["id"]] * 3)) == 1


@pytest.mark.parametrize("bound", ["1e400", "-1e400"])
@pytest.mark.parametrize("member", ["priceMin", "priceMax"])
def test_a_bound_that_is_no_number_is_refused(service: Service, member: str, bound: str) -> None:
    """What is too large to be a number is the caller's mistake, not a failure of ours."""
    answered = ask(service, f"{{ products(filter: {{{member}: {bound}}}) {{ id }} }}")
    assert answered.codes in (["BAD_USER_INPUT"], ["GRAPHQL_VALIDATION_FAILED"])
    assert answered.data is None


@pytest.mark.parametrize("member", ["sku", "currency", "search"])
def test_text_that_no_engine_keeps_is_refused(service: Service, member: str) -> None:
    """A NUL character is BAD_USER_INPUT, in a variable and in the document."""
    in_variable = ask_for(service, **{member: "a\x00b"})
    in_document = ask(service, f'{{ products(filter: {{{member}: "a\\u0000b"}}) {{ id }} }}')
    assert (in_variable.codes, in_document.codes) == (["BAD_USER_INPUT"], ["BAD_USER_INPUT"])
