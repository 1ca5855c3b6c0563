"""Mutations: the changes of REST, with its rules and its events, each field a transaction of its own."""

from typing import Any

import pytest

from tests import shop
from tests.graphql.asking import Answered, ask, codes_of, got, together
from tests.service import Service

ORDER = "mutation($input: CreateOrderInput!) { createOrder(input: $input) { id total status lineItems { quantity } } }"
MOVES = {"fulfillOrder": "FULFILLED", "cancelOrder": "CANCELLED"}


def given(user: Any, *lines: tuple[Any, int], **members: Any) -> dict[str, Any]:
    """The variables of an order."""
    return {"input": shop.order_body(user, *lines, **members)}


def move(service: Service, name: str, item_id: str, tag: str | None = None, **headers: Any) -> Answered:
    query = f"mutation($id: ID!, $tag: String) {{ {name}(id: $id, ifMatch: $tag) {{ id status etag }} }}"
    return ask(service, query, {"id": item_id, "tag": tag}, **headers)


def update(service: Service, kind: str, item_id: str, tag: str | None = None, **members: Any) -> Answered:
    query = f"""mutation($id: ID!, $input: Update{kind}Input!, $tag: String) {{
      update{kind}(id: $id, input: $input, ifMatch: $tag) {{ id name status etag updatedAt }}
    }}"""
    return ask(service, query, {"id": item_id, "input": members, "tag": tag})


def refused(answered: Answered, code: str, *fields: str) -> None:
    """Fails the test unless the answer is one business error of this code that names these members."""
    assert answered.status == 200
    assert answered.data is None
    assert answered.codes == [code]
    assert answered.errors[0]["extensions"]["category"] == "business"
    assert sorted(answered.fields) == sorted(fields)
    for each in answered.errors[0]["extensions"].get("errors", []):
        assert each.keys() == {"field", "message", "pointer", "code"}


# --- each of them ---


def test_a_user_is_created(service: Service) -> None:
    """`createUser` makes what POST makes, and says so."""
    body = shop.user_body(name="Grace")
    query = "mutation($input: CreateUserInput!) { createUser(input: $input) { id name email status etag orders { totalCount } } }"
    made = got(service, query, {"input": body})["createUser"]
    assert made["orders"] == {"totalCount": 0}
    assert (made["name"], made["email"], made["status"]) == ("Grace", body["email"], "ACTIVE")
    reply = service.get(f"/v1/users/{made['id']}")
    assert reply.json["email"] == body["email"]
    assert service.call("PATCH", f"/v1/users/{made['id']}", {}, if_match=made["etag"]).status == 200
    assert shop.told(service, f"users/{made['id']}") == ["user.created"]


def test_a_product_is_created(service: Service) -> None:
    """`createProduct` makes what POST makes; what is not given is its default."""
    query = "mutation($input: CreateProductInput!) { createProduct(input: $input) { id price stock status description } }"
    body = {"sku": shop.unique(), "name": "Lantern", "price": 0.29, "currency": "EUR"}
    made = got(service, query, {"input": body})["createProduct"]
    assert made == {"id": made["id"], "price": 0.29, "stock": None, "status": "ACTIVE", "description": None}
    shown = shop.get(service, f"/v1/products/{made['id']}")
    assert {name: shown[name] for name in body} == body
    assert shop.told(service, f"products/{made['id']}") == ["product.created"]


def test_an_order_is_created(service: Service) -> None:
    """`createOrder` takes today's prices and the stock, and answers what is then there."""
    user, lamp, wick = (
        shop.a_user(service),
        shop.a_product(service, price=0.1),
        shop.a_product(service, stock=None),
    )
    address = shop.an_address(service, user)
    query = """mutation($input: CreateOrderInput!) { createOrder(input: $input) {
      id total currency status user { id } shippingAddress { id city }
      lineItems { quantity unitPrice total sku product { id stock } } } }"""
    made = got(service, query, given(user, (lamp, 3), (wick, 1), shippingAddressId=address["id"]))[
        "createOrder"
    ]
    order_id = made.pop("id")
    assert made == {
        "total": 2.8,
        "currency": "GBP",
        "status": "PENDING",
        "user": {"id": user["id"]},
        "shippingAddress": {"id": address["id"], "city": "Leeds"},
        "lineItems": [
            {
                "quantity": 3,
                "unitPrice": 0.1,
                "total": 0.3,
                "sku": lamp["sku"],
                "product": {"id": lamp["id"], "stock": 97},
            },
            {
                "quantity": 1,
                "unitPrice": 2.5,
                "total": 2.5,
                "sku": wick["sku"],
                "product": {"id": wick["id"], "stock": None},
            },
        ],
    }
    assert shop.stock_of(service, lamp) == 97
    assert shop.get(service, f"/v1/orders/{order_id}")["userId"] == user["id"]
    assert shop.told(service, f"orders/{order_id}") == ["order.placed"]


@pytest.mark.parametrize(("kind", "make"), [("User", shop.a_user), ("Product", shop.a_product)])
def test_an_update_changes_what_is_given(service: Service, kind: str, make: Any) -> None:
    """Members left out stay; the version moves once; nothing given, or what is there already, is no change."""
    item = make(service)
    changed = update(service, kind, item["id"], name="Anew").sound[f"update{kind}"]
    assert changed["name"] == "Anew"
    path = f"/v1/{kind.lower()}s/{item['id']}"
    now = shop.get(service, path)
    assert now == item | {"name": "Anew", "updatedAt": changed["updatedAt"]}
    for nothing in ({}, {"name": "Anew"}):
        assert update(service, kind, item["id"], **nothing).sound[f"update{kind}"] == changed
    assert shop.get(service, path) == now
    told = [f"{kind.lower()}.created", f"{kind.lower()}.updated"]
    assert shop.told(service, f"{kind.lower()}s/{item['id']}") == told


def test_null_sets_the_default(service: Service) -> None:
    """In an update null is a member's default; of a required one it is refused, like null in a PATCH."""
    product = shop.a_product(service, description="d", stock=5, status="ARCHIVED")
    update(service, "Product", product["id"], description=None, stock=None, status=None)
    now = shop.get(service, f"/v1/products/{product['id']}")
    assert (now["description"], now["stock"], now["status"]) == (None, None, "ACTIVE")
    refused(
        update(service, "Product", product["id"], name=None, price=None), "BAD_USER_INPUT", "name", "price"
    )
    refused(update(service, "User", shop.a_user(service)["id"], email=None), "BAD_USER_INPUT", "email")
    assert shop.get(service, f"/v1/products/{product['id']}") == now


def test_a_price_keeps_its_decimals_through_an_update(service: Service) -> None:
    """What is not given is not rounded, converted or judged anew."""
    product = shop.a_product(service, price=1.005, currency="KWD", stock=3)
    assert not update(service, "Product", product["id"], name="Anew").errors
    assert shop.get(service, f"/v1/products/{product['id']}")["price"] == 1.005
    refused(update(service, "Product", product["id"], currency="EUR"), "BAD_USER_INPUT", "price")


def test_a_user_is_deactivated(service: Service) -> None:
    """`deactivateUser` is told once; a second time changes nothing; then they place no orders."""
    user, product = shop.a_user(service), shop.a_product(service)
    query = "mutation($id: ID!) { deactivateUser(id: $id) { status etag } }"
    first, again = (got(service, query, {"id": user["id"]})["deactivateUser"] for _ in range(2))
    assert first == again
    assert first["status"] == "DEACTIVATED"
    assert shop.told(service, f"users/{user['id']}") == ["user.created", "user.deactivated"]
    refused(ask(service, ORDER, given(user, (product, 1))), "BAD_USER_INPUT", "userId")
    assert shop.stock_of(service, product) == 100


@pytest.mark.parametrize(("name", "status"), MOVES.items())
def test_an_order_is_moved_once(service: Service, name: str, status: str) -> None:
    """A pending order moves and is told of; again is no change; anything else is INVALID_TRANSITION."""
    product = shop.a_product(service, stock=10)
    order = shop.an_order(service, (product, 4))
    first, again = (move(service, name, order["id"]).sound[name] for _ in range(2))
    assert first == again
    assert first["status"] == status
    other = next(each for each in MOVES if each != name)
    refused(move(service, other, order["id"]), "INVALID_TRANSITION", "status")
    assert shop.told(service, f"orders/{order['id']}") == ["order.placed", f"order.{status.lower()}"]
    assert shop.stock_of(service, product) == (6 if status == "FULFILLED" else 10)


def test_events_are_those_of_rest(service: Service) -> None:
    """An event says the same whichever surface caused it: source, type, trace; only id, time and subject differ."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    users = []
    made = ask(
        service,
        "mutation($input: CreateUserInput!) { createUser(input: $input) { id } }",
        {"input": shop.user_body()},
        traceparent=trace,
    )
    users.append(made.sound["createUser"]["id"])
    users.append(service.made("/v1/users", shop.user_body(), traceparent=trace)["id"])
    ours, theirs = (shop.events_of(service, f"users/{user_id}") for user_id in users)
    assert len(ours) == len(theirs) == 1
    for event in (ours[0], theirs[0]):
        for name in ("id", "time", "subject"):
            event.pop(name)
        for name in ("entityId", "timestamp"):
            event["data"].pop(name)
    assert ours == theirs
    assert ours[0]["traceparent"] == trace


# --- what is refused ---


def test_every_bad_line_is_named(service: Service) -> None:
    """One answer names every bad member, whatever is wrong with each."""
    old = shop.a_product(service, status="ARCHIVED")
    euro, lamp = shop.a_product(service, currency="EUR"), shop.a_product(service)
    lines = [
        {"productId": lamp["id"], "quantity": 0},
        {"productId": lamp["id"], "quantity": 10_001},
        {"productId": "nope", "quantity": 1},
        {"productId": old["id"], "quantity": 1},
        {"productId": euro["id"], "quantity": 1},
    ]
    answered = ask(
        service, ORDER, {"input": {"userId": "nobody", "lineItems": lines, "shippingAddressId": "x"}}
    )
    refused(
        answered,
        "BAD_USER_INPUT",
        "userId",
        "lineItems[0].quantity",
        "lineItems[1].quantity",
        "lineItems[2].productId",
        "lineItems[3].productId",
        "lineItems[4].productId",
        "shippingAddressId",
    )
    assert answered.errors[0]["path"] == ["createOrder"]
    assert answered.errors[0]["locations"] == [{"line": 1, "column": 39}]


@pytest.mark.parametrize("lines", [[], [{"productId": "x", "quantity": 1}] * 101])
def test_an_order_has_1_to_100_lines(service: Service, lines: Any) -> None:
    """None and 101 are BAD_USER_INPUT."""
    refused(
        ask(service, ORDER, {"input": {"userId": shop.a_user(service)["id"], "lineItems": lines}}),
        "BAD_USER_INPUT",
        "lineItems",
    )


def test_someone_elses_address_is_no_address(service: Service) -> None:
    """The shipping address has to be the user's own."""
    address = shop.an_address(service, shop.a_user(service))
    product = shop.a_product(service)
    answered = ask(service, ORDER, given(shop.a_user(service), (product, 1), shippingAddressId=address["id"]))
    refused(answered, "BAD_USER_INPUT", "shippingAddressId")


def test_too_little_stock_has_its_own_code(service: Service) -> None:
    """INSUFFICIENT_STOCK names each line that cannot be had, counting the ones before; nothing is taken."""
    user, few, none = shop.a_user(service), shop.a_product(service, stock=3), shop.a_product(service, stock=0)
    answered = ask(service, ORDER, given(user, (few, 2), (few, 2), (none, 1)))
    refused(answered, "INSUFFICIENT_STOCK", "lineItems[1].quantity", "lineItems[2].quantity")
    assert shop.stock_of(service, few) == 3
    assert shop.walked(service, f"/v1/orders?userId={user['id']}") == []


def test_too_little_stock_among_other_mistakes_is_bad_input(service: Service) -> None:
    """Where more is wrong, the code is BAD_USER_INPUT and `errors` says all of it."""
    few = shop.a_product(service, stock=1)
    answered = ask(service, ORDER, {"input": shop.order_body({"id": "nobody"}, (few, 2))})
    refused(answered, "BAD_USER_INPUT", "userId", "lineItems[0].quantity")


@pytest.mark.parametrize(
    ("kind", "members", "fields"),
    [
        ("User", {"name": "", "email": "no"}, ["name", "email"]),
        ("User", {"name": "x" * 201, "email": "a b@c"}, ["name", "email"]),
        ("Product", {"price": -1, "stock": -1, "currency": "XXX"}, ["price", "stock", "currency"]),
        ("Product", {"price": 0.001}, ["price"]),
        ("Product", {"price": 1e300}, ["price"]),
        ("Product", {"sku": "", "name": "", "stock": -(2**31)}, ["sku", "name", "stock"]),
    ],
)
def test_every_bad_member_is_named(service: Service, kind: str, members: Any, fields: list[str]) -> None:
    """Creating and updating judge alike, and name all that is wrong."""
    body = shop.user_body() if kind == "User" else shop.product_body()
    query = f"mutation($input: Create{kind}Input!) {{ create{kind}(input: $input) {{ id }} }}"
    refused(ask(service, query, {"input": body | members}), "BAD_USER_INPUT", *fields)
    item = shop.a_user(service) if kind == "User" else shop.a_product(service)
    refused(update(service, kind, item["id"], **members), "BAD_USER_INPUT", *fields)


@pytest.mark.parametrize("price", ["1e400", "1" + "0" * 400])
def test_a_price_that_is_no_number_is_named(service: Service, price: str) -> None:
    """A literal beyond all numbers is the caller's mistake."""
    query = f'mutation {{ createProduct(input: {{sku: "{shop.unique()}", name: "n", price: {price}, currency: "EUR"}}) {{ id }} }}'
    answered = ask(service, query)
    assert answered.codes in (["BAD_USER_INPUT"], ["GRAPHQL_VALIDATION_FAILED"])


def test_what_must_be_unique_is_a_conflict(service: Service) -> None:
    """A duplicate email, in whatever case, or sku is CONFLICT and names the member, as a 409 does."""
    user, product = shop.a_user(service), shop.a_product(service)
    create_user = "mutation($input: CreateUserInput!) { createUser(input: $input) { id } }"
    create_product = "mutation($input: CreateProductInput!) { createProduct(input: $input) { id } }"
    taken = shop.user_body(email=user["email"].upper())
    refused(ask(service, create_user, {"input": taken}), "CONFLICT", "email")
    refused(ask(service, create_product, {"input": shop.product_body(sku=product["sku"])}), "CONFLICT", "sku")
    refused(update(service, "User", shop.a_user(service)["id"], email=user["email"]), "CONFLICT", "email")
    refused(update(service, "Product", shop.a_product(service)["id"], sku=product["sku"]), "CONFLICT", "sku")


@pytest.mark.parametrize("item_id", ["", "nope", "01900000-0000-7000-8000-000000000000", "x" * 5000])
def test_an_id_that_names_nothing_is_not_found(service: Service, item_id: str) -> None:
    """Every mutation with an id says NOT_FOUND."""
    for answered in (
        update(service, "User", item_id, name="x"),
        update(service, "Product", item_id, name="x"),
        *(move(service, name, item_id) for name in MOVES),
        ask(service, "mutation($id: ID!) { deactivateUser(id: $id) { id } }", {"id": item_id}),
    ):
        refused(answered, "NOT_FOUND")


def test_what_was_deleted_is_not_found(service: Service) -> None:
    """A deleted user, product and order can no longer be changed."""
    user, product, order = shop.a_user(service), shop.a_product(service), shop.an_order(service)
    for path in (f"users/{user['id']}", f"products/{product['id']}", f"orders/{order['id']}"):
        service.call("DELETE", f"/v1/{path}")
    refused(update(service, "User", user["id"], name="x"), "NOT_FOUND")
    refused(update(service, "Product", product["id"], name="x"), "NOT_FOUND")
    refused(move(service, "cancelOrder", order["id"]), "NOT_FOUND")


def test_a_variable_that_turns_out_null_is_named(service: Service) -> None:
    """A variable with a default may be null where nothing may be; that is found when it is used, and named."""
    user, product = shop.a_user(service), shop.a_product(service)
    query = f"""mutation($n: Int = 1) {{ createOrder(input: {{
      userId: "{user["id"]}", lineItems: [{{productId: "{product["id"]}", quantity: $n}}]
    }}) {{ id }} }}"""
    assert ask(service, query).sound
    refused(ask(service, query, {"n": None}), "BAD_USER_INPUT", "lineItems[0].quantity")
    query = 'mutation($id: ID = "x") { deactivateUser(id: $id) { id } }'
    refused(ask(service, query, {"id": None}), "BAD_USER_INPUT", "id")


# --- ifMatch ---


def test_if_match_holds_or_is_a_conflict(service: Service) -> None:
    """The present etag passes, also from REST, in a list and as `*`; an old one, a weak one and none are CONFLICT."""
    user = shop.a_user(service)
    old = service.get(f"/v1/users/{user['id']}").headers["etag"]
    for turn, passes in enumerate(("{}", '"x", {}', "*", "  {} ")):
        tag = service.get(f"/v1/users/{user['id']}").headers["etag"]
        answered = update(service, "User", user["id"], passes.format(tag), name=f"Turn {turn}")
        assert answered.sound["updateUser"]["name"] == f"Turn {turn}"
    current = answered.sound["updateUser"]["etag"]
    assert update(service, "User", user["id"], current, name="Last").sound["updateUser"]["name"] == "Last"
    current = service.get(f"/v1/users/{user['id']}").headers["etag"]
    for stale in (old, f"W/{current}", "", '""', '"x"'):
        refused(update(service, "User", user["id"], stale, name="Never"), "CONFLICT")
    assert shop.get(service, f"/v1/users/{user['id']}")["name"] == "Last"


@pytest.mark.parametrize("bad", ["7", "7.graphql", '"7', '7"', "W/7", '"7" "8"'])
def test_an_if_match_that_is_no_etag_is_named(service: Service, bad: str) -> None:
    """What cannot be an etag is BAD_USER_INPUT, naming the argument."""
    refused(move(service, "cancelOrder", shop.an_order(service)["id"], bad), "BAD_USER_INPUT", "ifMatch")


def test_who_is_not_there_is_not_found_before_any_conflict(service: Service) -> None:
    """NOT_FOUND comes before CONFLICT, and CONFLICT before what is wrong with the input."""
    refused(move(service, "cancelOrder", "nope", '"9"'), "NOT_FOUND")
    refused(update(service, "User", shop.a_user(service)["id"], '"9"', name=""), "CONFLICT")


def test_one_of_two_that_saw_the_same_state_wins(service: Service) -> None:
    """Of changes at once with the same ifMatch exactly one happens."""
    user = shop.a_user(service)
    tag = service.get(f"/v1/users/{user['id']}").headers["etag"]
    query = "mutation($id: ID!, $name: String, $tag: String) { updateUser(id: $id, input: {name: $name}, ifMatch: $tag) { name } }"
    asked = [(query, {"id": user["id"], "name": f"N{n}", "tag": tag}) for n in range(10)]
    answers = together(service, *asked)
    assert codes_of(answers) == ["CONFLICT"] * 9
    (winner,) = [each.data["updateUser"]["name"] for each in answers if not each.errors]
    assert shop.get(service, f"/v1/users/{user['id']}")["name"] == winner


# --- several fields ---


def test_fields_run_one_after_another(service: Service) -> None:
    """Each field sees what the one before it did, and selects what is there then."""
    product, user = shop.a_product(service, stock=5), shop.a_user(service)
    query = """mutation($input: CreateOrderInput!, $id: ID!) {
      a: createOrder(input: $input) { lineItems { product { stock } } }
      up: updateProduct(id: $id, input: {price: 7}) { price stock }
      b: createOrder(input: $input) { total lineItems { product { stock price } } }
    }"""
    assert got(service, query, given(user, (product, 2)) | {"id": product["id"]}) == {
        "a": {"lineItems": [{"product": {"stock": 3}}]},
        "up": {"price": 7.0, "stock": 3},
        "b": {"total": 14.0, "lineItems": [{"product": {"stock": 1, "price": 7.0}}]},
    }


def test_the_one_that_fails_leaves_those_before_it(service: Service) -> None:
    """What was changed before an error stays, nothing after it runs, and the error says which it was."""
    product, user = shop.a_product(service, stock=3), shop.a_user(service)
    query = """mutation($input: CreateOrderInput!) {
      a: createOrder(input: $input) { id } b: createOrder(input: $input) { id } c: createOrder(input: $input) { id }
    }"""
    answered = ask(service, query, given(user, (product, 2)))
    refused(answered, "INSUFFICIENT_STOCK", "lineItems[0].quantity")
    assert answered.errors[0]["path"] == ["b"]
    assert shop.stock_of(service, product) == 1
    assert len(shop.walked(service, f"/v1/orders?userId={user['id']}")) == 1


def test_the_same_field_under_one_name_is_one_change(service: Service) -> None:
    """Fields that are merged, by name and in fragments, happen once and select everything."""
    product, user = shop.a_product(service, stock=3), shop.a_user(service)
    query = """mutation($input: CreateOrderInput!) {
      createOrder(input: $input) { status } ...More createOrder(input: $input) { total }
    } fragment More on Mutation { createOrder(input: $input) { currency } }"""
    assert got(service, query, given(user, (product, 1))) == {
        "createOrder": {"status": "PENDING", "currency": "GBP", "total": 2.5}
    }
    assert shop.stock_of(service, product) == 2


def test_a_skipped_change_does_not_happen(service: Service) -> None:
    """`@skip` and `@include` decide about a change as about any field."""
    order = shop.an_order(service)
    query = """mutation($id: ID!, $no: Boolean!) {
      fulfillOrder(id: $id) @skip(if: $no) { status } cancelOrder(id: $id) @include(if: $no) { status } __typename
    }"""
    assert got(service, query, {"id": order["id"], "no": True}) == {
        "cancelOrder": {"status": "CANCELLED"},
        "__typename": "Mutation",
    }


def test_a_refused_operation_changes_nothing(service: Service) -> None:
    """What is invalid anywhere is refused before any field of it runs."""
    product, user = shop.a_product(service, stock=5), shop.a_user(service)
    good = "createOrder(input: $input) { id }"
    for query in (
        f"mutation($input: CreateOrderInput!) {{ {good} nothing }}",
        f"mutation($input: CreateOrderInput!) {{ {good} cancelOrder {{ id }} }}",
        f"mutation($input: CreateOrderInput!, $x: Int!) {{ {good} __typename @skip(if: $x) }}",
        f"mutation($input: CreateOrderInput!, $x: Boolean!) {{ {good} __typename @skip(if: $x) }}",
        f"mutation A($input: CreateOrderInput!) {{ {good} }} mutation B {{ __typename }}",
    ):
        answered = ask(service, query, given(user, (product, 1)))
        assert answered.codes
        assert "data" not in answered.body
    assert shop.stock_of(service, product) == 5


def test_statements_are_counted_of_failures_too(service: Service) -> None:
    """`extensions.cost` says what was asked of the database, also of a change that was refused."""
    few = shop.a_product(service, stock=1)
    assert ask(service, ORDER, given(shop.a_user(service), (few, 2))).cost["statements"] > 0
    assert move(service, "cancelOrder", "nope").cost["statements"] > 0


# --- races ---


def test_the_last_piece_is_sold_once(service: Service) -> None:
    """Fifty orders at once for ten pieces: exactly ten, the others INSUFFICIENT_STOCK, and never below zero."""
    product, user = shop.a_product(service, stock=10), shop.a_user(service)
    answers = together(service, *[(ORDER, given(user, (product, 1)))] * 50)
    assert codes_of(answers) == ["INSUFFICIENT_STOCK"] * 40
    assert len({each.data["createOrder"]["id"] for each in answers if not each.errors}) == 10
    assert shop.stock_of(service, product) == 0
    assert len(shop.walked(service, f"/v1/orders?userId={user['id']}")) == 10


def test_an_order_is_fulfilled_or_cancelled(service: Service) -> None:
    """Of moves at once one kind wins, and the stock is given back once or not at all."""
    product = shop.a_product(service, stock=10)
    order = shop.an_order(service, (product, 4))
    query = "mutation($id: ID!) {{ {}(id: $id) {{ status }} }}"
    asked = [(query.format(name), {"id": order["id"]}) for name in (*MOVES, *MOVES, *MOVES, *MOVES)]
    answers = together(service, *asked)
    assert codes_of(answers) == ["INVALID_TRANSITION"] * 4
    status = shop.get(service, f"/v1/orders/{order['id']}")["status"]
    assert shop.stock_of(service, product) == (10 if status == "CANCELLED" else 6)
    assert shop.told(service, f"orders/{order['id']}") == ["order.placed", f"order.{status.lower()}"]
