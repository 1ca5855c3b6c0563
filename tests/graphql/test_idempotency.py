"""Idempotency keys on mutations: one change and one answer, however often it is sent."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import shop
from tests.given_clock import DAY, SECOND, GivenClock
from tests.graphql.asking import PATH, RESPONSE, Answered, ask, codes_of, together
from tests.service import Service

ORDER = """mutation($input: CreateOrderInput!) { createOrder(input: $input) {
  id total etag createdAt user { name } lineItems { id quantity product { stock } } } }"""
REPLAYED = "idempotency-replayed"


@pytest.fixture(scope="module")
def keeper(service: Service) -> Iterator[Service]:
    """A second process on the same database."""
    process = Service(service.database_url)
    yield process
    process.stop()


def buyer(service: Service, stock: int | None = 100) -> dict[str, Any]:
    """The variables of an order of one piece, by a user of its own."""
    user, product = shop.a_user(service), shop.a_product(service, stock=stock)
    return {"input": shop.order_body(user, (product, 1)), "product": product, "user": user}


def order(
    service: Service, bought: dict[str, Any], once: str, query: str = ORDER, **headers: Any
) -> Answered:
    """The order under an idempotency key."""
    return ask(service, query, {"input": bought["input"]}, idempotency_key=once, **headers)


def orders_of(service: Service, bought: dict[str, Any]) -> int:
    return len(shop.walked(service, f"/v1/orders?userId={bought['user']['id']}"))


def data_in(answered: Answered) -> str:
    """The data as it was sent."""
    return answered.reply.body.decode().partition(',"extensions"')[0]


def test_the_same_request_gets_the_first_answer_again(keeper: Service) -> None:
    """Sent again it is answered as at first, marked as a replay, and nothing more happens."""
    bought, key = buyer(keeper), shop.unique()
    first = order(keeper, bought, key)
    assert first.sound["createOrder"]["lineItems"][0]["product"]["stock"] == 99
    assert REPLAYED not in first.headers
    for _ in range(3):
        again = order(keeper, bought, key)
        assert again.headers[REPLAYED] == "true"
        assert data_in(again) == data_in(first)
        assert not again.errors
    assert orders_of(keeper, bought) == 1
    assert shop.stock_of(keeper, bought["product"]) == 99
    assert shop.told(keeper, f"orders/{first.data['createOrder']['id']}") == ["order.placed"]


def test_an_answer_outlives_what_it_was_about(keeper: Service) -> None:
    """The first answer is given again though the order has moved on since, and its product is gone."""
    bought, key = buyer(keeper), shop.unique()
    first = order(keeper, bought, key)
    path = f"/v1/orders/{first.sound['createOrder']['id']}"
    assert keeper.call("PATCH", path, {"status": "CANCELLED"}).status == 200
    keeper.call("DELETE", f"/v1/products/{bought['product']['id']}")
    again = order(keeper, bought, key)
    assert data_in(again) == data_in(first)
    assert shop.get(keeper, path)["status"] == "CANCELLED"


def test_many_at_once_are_one_order(keeper: Service) -> None:
    """Of twenty identical requests at once one order comes; whoever is answered has the same bytes."""
    bought, key = buyer(keeper), shop.unique()
    answers = together(keeper, *[(ORDER, {"input": bought["input"]})] * 20, idempotency_key=key)
    answers.append(order(keeper, bought, key))
    sound = [each for each in answers if not each.errors]
    assert len({data_in(each) for each in sound}) == 1
    assert [each.headers.get(REPLAYED) for each in sound].count(None) == 1
    assert set(codes_of(answers)) <= {"CONFLICT"}
    assert answers[-1].headers[REPLAYED] == "true"
    assert orders_of(keeper, bought) == 1
    assert shop.stock_of(keeper, bought["product"]) == 99


def test_many_at_once_on_two_processes_are_one_order(service: Service, keeper: Service) -> None:
    """The same for requests that reach different processes: one order, and one answer for all who get one."""
    bought, key = buyer(service), shop.unique()
    body = {"query": ORDER, "variables": {"input": bought["input"]}}
    headers = {"idempotency_key": key}
    waiting = [
        each.begin(each._call("POST", PATH, body, service.key, headers))
        for _ in range(10)
        for each in (service, keeper)
    ]
    answers = [Answered(each.result(timeout=60)) for each in waiting]
    sound = [each for each in answers if not each.errors]
    assert len({data_in(each) for each in sound}) == 1
    assert [each.headers.get(REPLAYED) for each in sound].count(None) == 1
    assert set(codes_of(answers)) <= {"CONFLICT"}
    assert orders_of(service, bought) == 1


def test_a_key_still_running_is_a_conflict(keeper: Service) -> None:
    """Who comes while the first is being answered is told CONFLICT, which is no replay, and may try again."""
    bought, key = buyer(keeper), shop.unique()
    answers = together(keeper, *[(ORDER, {"input": bought["input"]})] * 5, idempotency_key=key)
    late = [each for each in answers if each.errors]
    assert late
    for each in late:
        assert each.codes == ["CONFLICT"]
        assert each.data is None
        assert REPLAYED not in each.headers
    assert order(keeper, bought, key).headers[REPLAYED] == "true"


@pytest.mark.parametrize("change", ["variables", "query", "operationName", "space"])
def test_another_request_under_a_key_is_bad_input(keeper: Service, change: str) -> None:
    """The same key with anything else in the body is BAD_USER_INPUT and does nothing."""
    bought, key = buyer(keeper), shop.unique()
    body: dict[str, Any] = {
        "query": ORDER.replace("mutation", "mutation A"),
        "variables": {"input": bought["input"]},
    }
    assert "errors" not in keeper.post(PATH, body, idempotency_key=key).json
    other = {
        "variables": body | {"variables": {"input": bought["input"] | {"shippingAddressId": None}}},
        "query": body | {"query": body["query"].replace("total", "status")},
        "operationName": body | {"operationName": "A"},
        "space": body | {"query": body["query"] + " "},
    }[change]
    answered = Answered(keeper.post(PATH, other, idempotency_key=key))
    assert answered.codes == ["BAD_USER_INPUT"]
    assert answered.data is None
    assert REPLAYED not in answered.headers
    assert orders_of(keeper, bought) == 1
    assert keeper.post(PATH, body, idempotency_key=key).headers[REPLAYED] == "true"


def test_a_key_is_of_one_surface(keeper: Service) -> None:
    """A key that REST has seen is another request's here, and the other way round."""
    bought, key, other = buyer(keeper), shop.unique(), shop.unique()
    keeper.made("/v1/orders", bought["input"], idempotency_key=key)
    assert order(keeper, bought, key).codes == ["BAD_USER_INPUT"]
    assert order(keeper, bought, other).sound
    assert keeper.post("/v1/orders", bought["input"], idempotency_key=other).status == 422


def test_a_key_belongs_to_its_api_key(keeper: Service) -> None:
    """Two callers may use the same text: neither meets the other's answers."""
    bought, key = buyer(keeper), shop.unique()
    caller = keeper.new_key("admin")
    one, other = order(keeper, bought, key), order(keeper, bought, key, key=caller)
    assert one.sound["createOrder"]["id"] != other.sound["createOrder"]["id"]
    assert REPLAYED not in other.headers
    assert data_in(order(keeper, bought, key, key=caller)) == data_in(other)
    assert data_in(order(keeper, bought, key)) == data_in(one)


def test_who_may_no_longer_ask_is_not_shown_the_answer(keeper: Service) -> None:
    """Scopes are judged before a replay."""
    bought, key = buyer(keeper), shop.unique()
    order(keeper, bought, key)
    refused = order(keeper, bought, key, key=keeper.new_key("orders:read"))
    assert refused.codes == ["FORBIDDEN"]
    assert REPLAYED not in refused.headers
    assert keeper.post(PATH, {"query": ORDER}, idempotency_key=key, key=None).status == 401


def test_an_answer_with_an_error_is_not_kept(keeper: Service) -> None:
    """A refused change leaves its key free, for the same request later or for a better one."""
    bought, key = buyer(keeper, stock=0), shop.unique()
    for _ in range(2):
        refused = order(keeper, bought, key)
        assert refused.codes == ["INSUFFICIENT_STOCK"]
        assert REPLAYED not in refused.headers
    keeper.call("PATCH", f"/v1/products/{bought['product']['id']}", {"stock": 1})
    better = bought["input"] | {"shippingAddressId": None}
    assert order(keeper, bought | {"input": better}, key).sound
    assert shop.stock_of(keeper, bought["product"]) == 0


def test_a_change_whose_answer_has_an_error_is_undone(keeper: Service) -> None:
    """If something selected cannot be told, the change is rolled back, key, stock, events and all."""
    bought, key = buyer(keeper), shop.unique()
    caller = keeper.new_key("orders:write", "orders:read", "products:read")
    answered = order(keeper, bought, key, key=caller)
    assert answered.codes == ["FORBIDDEN"]
    assert answered.errors[0]["path"] == ["createOrder", "user"]
    assert answered.data is None
    assert REPLAYED not in answered.headers
    assert orders_of(keeper, bought) == 0
    assert shop.stock_of(keeper, bought["product"]) == 100
    assert order(keeper, bought, key, ORDER.replace("user { name }", ""), key=caller).sound
    assert orders_of(keeper, bought) == 1


def test_without_a_key_such_a_change_stays(keeper: Service) -> None:
    """Without one, the change stands and what could be told is told."""
    bought = buyer(keeper)
    caller = keeper.new_key("orders:write", "orders:read", "products:read")
    answered = ask(keeper, ORDER, {"input": bought["input"]}, key=caller)
    assert answered.codes == ["FORBIDDEN"]
    assert answered.data["createOrder"]["user"] is None
    assert answered.data["createOrder"]["total"] == 2.5
    assert orders_of(keeper, bought) == 1


SEVERAL = """mutation($input: CreateOrderInput!, $again: CreateOrderInput!) {
  a: createOrder(input: $input) { id } __typename b: createOrder(input: $again) { id } }"""


def test_several_changes_happen_once_each(keeper: Service) -> None:
    """A mutation of several fields is replayed whole, in its order."""
    bought, key = buyer(keeper), shop.unique()
    variables = {"input": bought["input"], "again": bought["input"]}
    first, again = (ask(keeper, SEVERAL, variables, idempotency_key=key) for _ in range(2))
    assert first.sound["a"] != first.sound["b"]
    assert list(first.sound) == ["a", "__typename", "b"]
    assert data_in(again) == data_in(first)
    assert (first.headers.get(REPLAYED), again.headers.get(REPLAYED)) == (None, "true")
    assert orders_of(keeper, bought) == 2


def test_what_failed_of_several_is_tried_again(keeper: Service) -> None:
    """Sent again after an error, what had happened happens no more and the rest does; that is no replay yet."""
    bought, few = buyer(keeper), buyer(keeper, stock=0)
    variables, key = {"input": bought["input"], "again": few["input"]}, shop.unique()
    for _ in range(2):
        failed = ask(keeper, SEVERAL, variables, idempotency_key=key)
        assert failed.codes == ["INSUFFICIENT_STOCK"]
        assert failed.errors[0]["path"] == ["b"]
        assert REPLAYED not in failed.headers
    keeper.call("PATCH", f"/v1/products/{few['product']['id']}", {"stock": 5})
    done = ask(keeper, SEVERAL, variables, idempotency_key=key)
    assert REPLAYED not in done.headers
    assert data_in(ask(keeper, SEVERAL, variables, idempotency_key=key)) == data_in(done)
    assert (orders_of(keeper, bought), orders_of(keeper, few)) == (1, 1)


def test_other_processes_know_what_was_answered(service: Service, keeper: Service) -> None:
    """A key is one for all processes on a database."""
    bought, key = buyer(service), shop.unique()
    first, again = (order(each, bought, key, key=service.key) for each in (service, keeper))
    assert data_in(again) == data_in(first)
    assert again.headers[REPLAYED] == "true"


def test_the_media_type_is_no_part_of_a_request(service: Service) -> None:
    """Who asks again for the other media type gets the same answer in it."""
    bought, key = buyer(service), shop.unique()
    first, again = order(service, bought, key), order(service, bought, key, accept=RESPONSE)
    assert data_in(again) == data_in(first)
    assert again.headers["content-type"].startswith(RESPONSE)
    assert again.headers[REPLAYED] == "true"


def test_a_key_may_be_bare_or_quoted_and_has_its_length(service: Service) -> None:
    """1 to 255 printable characters; anything else is refused with 400 before anything runs."""
    bought, key = buyer(service), shop.unique() + "k" * 300
    first = order(service, bought, key[:255])
    assert first.sound
    assert order(service, bought, f'"{key[:255]}"').headers[REPLAYED] == "true"
    for bad in ("", '""', key[:256], "a\tb"):
        refused = order(service, bought, bad)
        assert (refused.status, refused.codes) == (400, ["BAD_USER_INPUT"])
    assert orders_of(service, bought) == 1


def test_queries_take_no_key(service: Service) -> None:
    """A query under a key is a query: it says what is there now."""
    user, key = shop.a_user(service), shop.unique()
    for name in ("Grace", "Alan"):
        service.call("PATCH", f"/v1/users/{user['id']}", {"name": name})
        answered = ask(service, f'{{ user(id: "{user["id"]}") {{ name }} }}', idempotency_key=key)
        assert answered.sound["user"]["name"] == name
        assert REPLAYED not in answered.headers


def test_a_mutation_without_a_change_is_no_replay(service: Service) -> None:
    """There is nothing to be replayed where nothing was asked to be changed."""
    for _ in range(2):
        assert REPLAYED not in ask(service, "mutation { __typename }", idempotency_key="typename").headers


def test_a_key_is_kept_for_a_day(engine: str, new_service: Callable[..., Service]) -> None:
    """After 24 hours the key is free again."""
    clock = GivenClock()
    service = new_service(engine, clock=clock)
    bought, key = buyer(service), shop.unique()
    first = order(service, bought, key)
    clock.move(DAY - SECOND)
    assert data_in(order(service, bought, key)) == data_in(first)
    clock.move(2 * SECOND)
    assert data_in(order(service, bought, key)) != data_in(first)
    assert orders_of(service, bought) == 2


def test_what_is_kept_is_json(service: Service) -> None:
    """Text of any script and money come back as they went."""
    key, name = shop.unique(), 'Зоя "\\u2028" 💡'
    query = (
        "mutation($input: CreateProductInput!) { createProduct(input: $input) { name price description } }"
    )
    variables = {"input": {"sku": shop.unique(), "name": name, "price": 1e9, "currency": "EUR"}}
    answers = [ask(service, query, variables, idempotency_key=key) for _ in range(2)]
    for each in answers:
        assert each.sound["createProduct"] == {"name": name, "price": 1e9, "description": None}
    assert json.loads(answers[0].reply.body)["data"] == json.loads(answers[1].reply.body)["data"]
