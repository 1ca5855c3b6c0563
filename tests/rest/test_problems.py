"""Problems: what went wrong is said in one form (RFC 9457), completely, and without the inside of the house."""

import logging
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests import shop
from tests.service import Reply, Service
from tradepost import problems
from tradepost.actions.users import Users

BASE = "http://shop.example"


def _reused_key(service: Service) -> Reply:
    key = shop.unique()
    service.made("/v1/users", shop.user_body(), idempotency_key=key)
    return service.post("/v1/users", shop.user_body(), idempotency_key=key)


def _duplicate(service: Service) -> Reply:
    return service.post("/v1/users", shop.user_body(email=shop.a_user(service)["email"]))


def _final(service: Service) -> Reply:
    path = f"/v1/orders/{shop.an_order(service)['id']}"
    service.call("PATCH", path, {"status": "FULFILLED"})
    return service.call("DELETE", path)


def _precondition(service: Service) -> Reply:
    return service.call("PATCH", f"/v1/users/{shop.a_user(service)['id']}", {}, if_match='"0"')


PROVOKED: dict[str, tuple[int, str, Callable[[Service], Reply]]] = {
    "broken JSON": (400, "malformed-request", lambda s: s.post("/v1/users", b"{")),
    "not an object": (400, "malformed-request", lambda s: s.post("/v1/users", [1])),
    "unknown parameter": (400, "malformed-request", lambda s: s.get("/v1/users?colour=red")),
    "bad limit": (400, "malformed-request", lambda s: s.get("/v1/users?limit=no")),
    "bad idempotency key": (
        400,
        "malformed-request",
        lambda s: s.post("/v1/users", shop.user_body(), idempotency_key="x" * 256),
    ),
    "no key": (401, "unauthenticated", lambda s: s.get("/v1/users", key=None)),
    "bad key": (401, "unauthenticated", lambda s: s.get("/v1/users", key="tp_no_such")),
    "no scope": (403, "forbidden", lambda s: s.get("/v1/users", key=s.new_key("orders:read"))),
    "unknown path": (404, "not-found", lambda s: s.get("/v1/nothing")),
    "unknown version": (404, "not-found", lambda s: s.get("/v77/users")),
    "unknown item": (404, "not-found", lambda s: s.get("/v1/users/nobody")),
    "unknown parent": (404, "not-found", lambda s: s.get("/v1/users/nobody/addresses")),
    "method": (405, "method-not-allowed", lambda s: s.call("DELETE", "/v1/users")),
    "not acceptable": (406, "not-acceptable", lambda s: s.get("/v1/users", accept="text/html")),
    "duplicate": (409, "duplicate", _duplicate),
    "accounting record": (409, "final", _final),
    "precondition": (412, "precondition-failed", _precondition),
    "too large": (413, "too-large", lambda s: s.post("/v1/users", b" " * ((1 << 20) + 1))),
    "media type": (
        415,
        "unsupported-media-type",
        lambda s: s.post("/v1/users", b"a=1", content_type="application/x-www-form-urlencoded"),
    ),
    "missing members": (422, "invalid", lambda s: s.post("/v1/users", {})),
    "another request under a key": (422, "idempotency-key-reused", _reused_key),
}


@pytest.mark.parametrize("name", PROVOKED)
def test_every_problem_has_the_form_of_the_law(service: Service, name: str) -> None:
    """A problem is application/problem+json whose members all are there and agree with the answer."""
    status, kind, provoke = PROVOKED[name]
    reply = provoke(service)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
    problem = reply.json
    assert problem["type"] == f"{BASE}/problems/{kind}"
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert isinstance(problem["errors"], list)
    assert problem["instance"].startswith("/")
    assert reply.headers["x-request-id"]
    assert int(reply.headers["content-length"]) == len(reply.body)
    for error in problem["errors"]:
        assert set(error) >= {"field", "message", "pointer", "code"}
        assert all(isinstance(text, str) for text in error.values())


def test_the_type_of_a_problem_is_a_page(service: Service) -> None:
    """`type` is an address that resolves, without a key, and explains the kind."""
    problem = service.get("/v1/users/nobody").json
    page = service.get(urlsplit(problem["type"]).path, key=None)
    assert page.status == 200
    assert problem["title"] in page.body.decode()


def test_every_kind_there_is_has_its_page(service: Service) -> None:
    """Each kind of problem the service can answer with is explained at its address, the rare ones too."""
    for kind in problems.kinds():
        page = service.get(f"/problems/{kind.kind}", key=None)
        assert page.status == 200, kind
        assert kind.title in page.body.decode()
    assert service.get("/problems/no-such-kind", key=None).status == 404


def test_a_problem_starts_with_the_configured_address(new_service: Callable[..., Service]) -> None:
    """Where the base address is set, `type` starts with it and not with the request's own."""
    service = new_service("sqlite", base_url="https://api.example.com/shop")
    assert service.get("/v1/nothing").json["type"] == "https://api.example.com/shop/problems/not-found"


@pytest.mark.parametrize(
    "path", ["/v1/users/nobody", "/v1/users/a%20b", "/v1/users/%C3%A9", "/nothing/at/all"]
)
def test_instance_is_the_path_of_the_request(service: Service, path: str) -> None:
    """`instance` is the request's path, without its query."""
    reply = service.get(f"{path}?fields=id")
    assert reply.status == 404
    assert unquote(reply.json["instance"]) == unquote(path)


BAD: dict[str, tuple[str, Any, dict[str, str]]] = {
    "user": (
        "/v1/users",
        {"name": "", "email": "nobody", "status": "GONE", "extra": 1},
        {"name": "length", "email": "invalid", "status": "unknown_value", "extra": "unknown"},
    ),
    "empty user": ("/v1/users", {}, {"name": "required", "email": "required"}),
    "product": (
        "/v1/products",
        {"name": 5, "price": -1, "currency": "QQQ", "stock": -1, "status": 1, "description": [], "a/b~c": 0},
        {
            "sku": "required",
            "name": "type",
            "price": "out_of_range",
            "currency": "invalid",
            "stock": "out_of_range",
            "status": "type",
            "description": "type",
            "a/b~c": "unknown",
        },
    ),
    "order": (
        "/v1/orders",
        {
            "status": "LOST",
            "shippingAddressId": 4,
            "lineItems": [
                {"productId": "p", "quantity": 0},
                {"quantity": 10_001},
                7,
                {"productId": None, "quantity": "1", "colour": "red"},
            ],
        },
        {
            "userId": "required",
            "status": "unknown_value",
            "shippingAddressId": "type",
            "lineItems[0].productId": "unknown",
            "lineItems[0].quantity": "out_of_range",
            "lineItems[1].quantity": "out_of_range",
            "lineItems[1].productId": "required",
            "lineItems[2]": "type",
            "lineItems[3].productId": "type",
            "lineItems[3].quantity": "type",
            "lineItems[3].colour": "unknown",
        },
    ),
    "redelivery": (
        "/v1/webhook-redeliveries",
        {"endpointId": "e", "from": "2026-01-01", "eventTypes": [{}, "*"], "status": "PENDING"},
        {"eventTypes[0]": "type", "status": "unknown_value", "endpointId": "unknown"},
    ),
    "one bad member": ("/v1/users", {"name": None, "email": "one@bad.example"}, {"name": "type"}),
    "no lines": (
        "/v1/orders",
        {"userId": "u", "lineItems": []},
        {"userId": "unknown", "lineItems": "length"},
    ),
    "API key": (
        "/v1/api-keys",
        {"scopes": ["users:read", "sudo", 1, ["admin"]], "userId": 5, "expiresAt": []},
        {
            "name": "required",
            "scopes[1]": "unknown_value",
            "scopes[2]": "type",
            "scopes[3]": "type",
            "userId": "type",
            "expiresAt": "type",
        },
    ),
    "too many scopes": ("/v1/api-keys", {"name": "n", "scopes": [1] * 101}, {"scopes": "length"}),
    "line item": (
        "/v1/line-items",
        {"orderId": 1, "quantity": 1.5},
        {"orderId": "type", "productId": "required", "quantity": "type"},
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_every_bad_member_is_named_at_once(service: Service, name: str) -> None:
    """One 422 names every member that is missing, unknown, of a wrong type or out of bounds, each with its code."""
    path, body, expected = BAD[name]
    reply = service.post(path, body)
    assert reply.status == 422
    said = [reply.json["detail"], *(error["message"] for error in reply.json["errors"])]
    assert not re.search(r"\b[a-z]+_[a-z]+\b", " ".join(said)), "a name from inside"
    codes = {error["field"]: error["code"] for error in reply.json["errors"]}
    assert codes == expected


def test_rules_and_types_are_judged_together(service: Service) -> None:
    """A member that breaks a business rule is named beside those that are of a wrong type or bound."""
    user = shop.a_user(service, status="DEACTIVATED")
    gone = shop.a_product(service, status="ARCHIVED")
    body = {
        "userId": user["id"],
        "status": "FULFILLED",
        "lineItems": [{"productId": gone["id"], "quantity": 1}, {"productId": "nothing", "quantity": 0}],
        "shippingAddressId": "nowhere",
        "extra": 1,
    }
    problem = service.post("/v1/orders", body).json
    assert shop.fields_of(problem) == {
        "userId",
        "status",
        "lineItems[0].productId",
        "lineItems[1].productId",
        "lineItems[1].quantity",
        "shippingAddressId",
        "extra",
    }


def test_all_broken_rules_of_a_new_order_are_named(service: Service) -> None:
    """A deactivated user, an unknown product, an archived one, a foreign currency and a short stock: all at once."""
    user = shop.a_user(service, status="DEACTIVATED")
    some, few = shop.a_product(service), shop.a_product(service, stock=1)
    archived, dollars = shop.a_product(service, status="ARCHIVED"), shop.a_product(service, currency="USD")
    nothing = {"id": "nothing"}
    lines = [(some, 1), (nothing, 1), (archived, 1), (dollars, 1), (few, 2)]
    problem = service.post("/v1/orders", shop.order_body(user, *lines, shippingAddressId="nowhere")).json
    assert shop.fields_of(problem) == {
        "userId",
        "shippingAddressId",
        "lineItems[1].productId",
        "lineItems[2].productId",
        "lineItems[3].productId",
        "lineItems[4].quantity",
    }


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_all_broken_rules_of_a_changed_order_are_named(service: Service, method: str) -> None:
    """A change of an order that breaks several rules hears of all of them."""
    order = shop.an_order(service)
    body = {
        "userId": shop.a_user(service)["id"],
        "shippingAddressId": "nowhere",
        "lineItems": [*order["lineItems"], {"productId": "nothing", "quantity": 1}],
    }
    problem = service.call(method, f"/v1/orders/{order['id']}", body).json
    assert shop.fields_of(problem) == {"userId", "shippingAddressId", "lineItems[1].productId"}


def test_all_that_is_wrong_with_an_api_key_is_named(service: Service) -> None:
    """An unknown user and an expiry in the past are both reported."""
    body = {"name": "n", "scopes": ["users:read"], "userId": "nobody", "expiresAt": "2001-01-01T00:00:00Z"}
    assert shop.fields_of(service.post("/v1/api-keys", body).json) == {"userId", "expiresAt"}


def test_field_pointer_and_message_say_where_and_what(service: Service) -> None:
    """`field` is written like lineItems[0].quantity, `pointer` is the JSON Pointer of the same place."""
    body = {"userId": "u", "lineItems": [{"productId": "p", "quantity": 0}]}
    (error,) = (
        each for each in service.post("/v1/orders", body).json["errors"] if "quantity" in each["field"]
    )
    assert error["field"] == "lineItems[0].quantity"
    assert error["pointer"] == "#/lineItems/0/quantity"
    assert "1" in error["message"]


@pytest.mark.parametrize(
    ("member", "pointer"),
    [
        ("a/b~c", "#/a~1b~0c"),
        ("user_id", "#/user_id"),
        ("created_at", "#/created_at"),
        ("foo_bar", "#/foo_bar"),
        ("USERID", "#/USERID"),
        ("_", "#/_"),
        ("version", "#/version"),
        ("deleted_at", "#/deleted_at"),
    ],
)
def test_an_unknown_member_is_named_as_it_was_sent(service: Service, member: str, pointer: str) -> None:
    """An unknown member is reported under exactly the name it was sent with."""
    for method, path in (
        ("POST", "/v1/users"),
        ("PUT", f"/v1/users/{shop.a_user(service)['id']}"),
        ("PATCH", f"/v1/users/{shop.a_user(service)['id']}"),
    ):
        reply = service.call(method, path, shop.user_body(**{member: 1}))
        assert reply.status == 422
        (error,) = reply.json["errors"]
        assert (error["field"], error["pointer"], error["code"]) == (member, pointer, "unknown")


def test_a_duplicate_names_the_member(service: Service) -> None:
    """A duplicate email, whatever its case, or sku is 409 and names the member, on POST, PUT and PATCH alike."""
    taken, other = shop.a_user(service), shop.a_user(service)
    again = taken["email"].upper()
    product, another = shop.a_product(service), shop.a_product(service)
    replies = {
        "email": [
            service.post("/v1/users", shop.user_body(email=again)),
            service.call("PUT", f"/v1/users/{other['id']}", shop.user_body(email=again)),
            service.call("PATCH", f"/v1/users/{other['id']}", {"email": again}),
        ],
        "sku": [
            service.post("/v1/products", shop.product_body(sku=product["sku"])),
            service.call("PUT", f"/v1/products/{another['id']}", shop.product_body(sku=product["sku"])),
            service.call("PATCH", f"/v1/products/{another['id']}", {"sku": product["sku"]}),
        ],
    }
    for field, found in replies.items():
        for reply in found:
            assert reply.status == 409
            assert [error["field"] for error in reply.json["errors"]] == [field]


def test_the_case_of_an_own_email_can_change(service: Service) -> None:
    """An email is no duplicate of itself in another case."""
    user = shop.a_user(service)
    reply = service.call("PATCH", f"/v1/users/{user['id']}", {"email": user["email"].title()})
    assert (reply.status, reply.json["email"]) == (200, user["email"].title())


READ_BACK: dict[str, Callable[[Service], str]] = {
    "user": lambda s: f"/v1/users/{shop.a_user(s)['id']}",
    "address": lambda s: (
        f"/v1/users/{(user := shop.a_user(s))['id']}/addresses/{shop.an_address(s, user)['id']}"
    ),
    "product": lambda s: f"/v1/products/{shop.a_product(s, price=19.99, description='A light')['id']}",
    "order": lambda s: f"/v1/orders/{shop.an_order(s)['id']}",
    "line item": lambda s: f"/v1/line-items/{shop.an_order(s)['lineItems'][0]['id']}",
    "line item below its order": lambda s: (
        f"/v1/orders/{(order := shop.an_order(s))['id']}/line-items/{order['lineItems'][0]['id']}"
    ),
}


@pytest.mark.parametrize("name", READ_BACK)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_was_read_can_be_sent_back(service: Service, name: str, method: str) -> None:
    """A representation that was read and sent back unchanged is accepted and changes nothing."""
    path = READ_BACK[name](service)
    read = service.get(path)
    written = service.call(method, path, read.json)
    assert (written.status, written.json) == (200, read.json)
    assert written.headers["etag"] == read.headers["etag"]


@pytest.mark.parametrize("name", READ_BACK)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_read_only_members_are_ignored_whatever_they_say(service: Service, name: str, method: str) -> None:
    """Values of any type in read-only members are accepted and ignored."""
    path = READ_BACK[name](service)
    read = service.get(path).json
    false = {
        "id": 5,
        "createdAt": "yesterday",
        "updatedAt": [],
        "total": {"a": 1},
        "unitPrice": -1,
        "currency": 0,
    }
    changeable = {"currency"} if name == "product" else set()
    mine = {member: value for member, value in false.items() if member in read and member not in changeable}
    written = service.call(method, path, read | mine)
    assert (written.status, written.json) == (200, read)


def test_read_only_members_are_ignored_in_a_new_item(service: Service) -> None:
    """A POST cannot choose an id, an instant or a total."""
    one = shop.a_user(service, id="mine", createdAt="2001-01-01T00:00:00Z", updatedAt=None)
    assert one["id"] != "mine"
    assert one["createdAt"] > "2002"
    order = shop.an_order(service, total=0, currency="XXX", shippingAddress={"city": "Leeds"})
    assert (order["total"], order["currency"], order["shippingAddress"]) == (2.5, "GBP", None)


SECRET = "the password is hunter2"


def test_an_unexpected_failure_of_an_action_says_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A 500 tells the request id and nothing of the inside; the log has the rest, under that id."""

    async def broken(*_: Any) -> None:
        raise ZeroDivisionError(SECRET)

    body = shop.user_body()
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(Users, "create", broken)
        reply = service.post("/v1/users", body, x_request_id="mine-5")
    assert (reply.status, reply.headers["content-type"]) == (500, "application/problem+json")
    assert reply.headers["x-request-id"] == reply.json["requestId"] == "mine-5"
    text = reply.body.decode()
    assert not re.search(r"hunter2|ZeroDivision|Traceback|\.py|broken|Users", text)
    assert reply.json["errors"] == []
    (record,) = caplog.records
    assert record.request_id == "mine-5"  # type: ignore[attr-defined]
    assert record.exc_info is not None
    assert SECRET in str(record.exc_info[1])
    assert service.post("/v1/users", body).status == 201


def test_an_unexpected_failure_of_a_statement_says_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a database says when a statement fails is for the log, not for the caller."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):

        def broken(*_: Any) -> Any:
            raise RuntimeError(SECRET + " SELECT users.name FROM users")

        patched.setattr(type(service.app.rest.performer.database), "compiled", broken)
        service.app.rest._access_control._authenticator._cached.clear()
        replies = [service.get(path), service.call("PATCH", path, {"name": "Eve"})]
    for reply in replies:
        assert reply.status == 500
        assert not re.search(r"hunter2|SELECT|users\.name|RuntimeError", reply.body.decode())
    assert service.get(path).json["name"] == "Ada"


def test_every_answer_carries_a_request_id(service: Service) -> None:
    """Every answer has an X-Request-Id of its own: successes, problems, documents, HEAD and OPTIONS."""
    user = shop.a_user(service)
    path = f"/v1/users/{user['id']}"
    tag = service.get(path).headers["etag"]
    replies = [
        *(provoke(service) for _, _, provoke in PROVOKED.values()),
        service.get(path),
        service.get(path, if_none_match=tag),
        service.call("HEAD", path),
        service.call("OPTIONS", path),
        service.get("/versions"),
        service.get("/livez"),
        service.call("PATCH", path, {"name": "Bo"}, prefer="return=minimal"),
        service.call("DELETE", path),
    ]
    ids = [reply.headers["x-request-id"] for reply in replies]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert all(len([name for name, _ in reply.lines if name == "x-request-id"]) == 1 for reply in replies)


@pytest.mark.parametrize("given", ["a", "0af7651916cd43dd-8448:eb211c", "A" * 128])
def test_a_sane_request_id_is_kept(service: Service, given: str) -> None:
    """A caller's own X-Request-Id comes back."""
    assert service.get("/v1/nothing", x_request_id=given).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", " ", "a b", "A" * 129, "a\tb", "é", 'a"b', "a,b"])
def test_another_request_id_is_replaced(service: Service, given: str) -> None:
    """What would not be safe in a header or a log is not echoed."""
    assert service.get("/v1/nothing", x_request_id=given).headers["x-request-id"] != given


def test_titles_and_types_are_the_same_for_every_occurrence(service: Service) -> None:
    """Two occurrences of a kind differ in detail, never in type, title and status (RFC 9457, 3.1)."""
    one, other = service.get("/v1/users/a").json, service.get("/v1/products/b").json
    assert all(one[name] == other[name] for name in ("type", "title", "status"))
    assert one["instance"] != other["instance"]


def test_no_problem_may_be_kept_by_a_cache(service: Service) -> None:
    """A problem is about one moment: it is not to be stored."""
    for _, _, provoke in PROVOKED.values():
        assert provoke(service).headers["cache-control"] == "no-store"
