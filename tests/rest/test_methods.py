"""Methods and paths: what each address takes, and what is said where there is nothing."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import shop
from tests.rest.hooks import an_endpoint
from tests.service import Service
from tradepost import catalogue
from tradepost.resource import Resource

# CONTRACT 2: all methods but for these.
ALL = {"GET", "POST", "PUT", "PATCH", "DELETE"}
LAW = {
    "event": {"GET"},
    "api_key": {"GET", "POST", "DELETE"},
    "webhook_secret": {"GET", "POST", "DELETE"},
    "webhook_delivery": {"GET", "POST"},
    "webhook_redelivery": {"GET", "POST"},
}
EVERY_METHOD = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "BREW",
    "get",
    "LINK",
]


class Address(NamedTuple):
    """An address of the catalogue and the methods it takes."""

    path: str
    allowed: frozenset[str]


def _addresses() -> Iterator[Address]:
    for resource in catalogue.RESOURCES:
        methods = LAW.get(
            resource.record.kind, ALL if resource.record.kind in _OURS else set(resource.methods)
        )
        for collection in _collections(resource):
            for path, possible in ((collection, {"GET", "POST"}), (f"{collection}/{{id}}", ALL - {"POST"})):
                taken = methods & possible
                extra = {"HEAD", "OPTIONS"} if "GET" in taken else {"OPTIONS"}
                yield Address(path, frozenset(taken | extra))


_OURS = {"user", "address", "product", "order", "line_item", "webhook_endpoint"}


def _collections(resource: Resource) -> Iterator[str]:
    if resource.top:
        yield f"/v1/{resource.segment}"
    if resource.parent:
        yield f"/v1/{resource.parent.parent.plural.replace('_', '-')}/{{parent}}/{resource.segment}"


ADDRESSES = list(_addresses())


@pytest.fixture(scope="module")
def filled(service: Service) -> dict[str, str]:
    """Each address with ids that are there."""
    user = shop.a_user(service)
    address, order = shop.an_address(service, user), shop.an_order(service, user=user)
    key = service.made("/v1/api-keys", {"name": "n", "scopes": ["users:read"]})
    event = shop.events_of(service, f"users/{user['id']}")[0]
    endpoint = an_endpoint(service, "webhook.ping")
    again = {"endpointId": endpoint["id"], "from": "2020-01-01"}
    ids = {
        "/v1/users": user,
        "/v1/products": shop.a_product(service),
        "/v1/orders": order,
        "/v1/line-items": order["lineItems"][0],
        "/v1/api-keys": key,
        "/v1/events": event,
        "/v1/webhook-endpoints": endpoint,
        "/v1/webhook-deliveries": service.made("/v1/webhook-deliveries", {"endpointId": endpoint["id"]}),
        "/v1/webhook-redeliveries": service.made("/v1/webhook-redeliveries", again),
        "/v1/users/{parent}/addresses": address,
        "/v1/orders/{parent}/line-items": order["lineItems"][0],
        "/v1/webhook-endpoints/{parent}/secrets": shop.get(
            service, f"/v1/webhook-endpoints/{endpoint['id']}/secrets"
        )["items"][0],
    }
    parents = {
        "/v1/users": user["id"],
        "/v1/orders": order["id"],
        "/v1/webhook-endpoints": endpoint["id"],
    }
    found = {}
    for path, _ in ADDRESSES:
        collection = path.removesuffix("/{id}")
        parent = parents.get(collection.partition("/{parent}")[0], "")
        item = ids.get(collection, {"id": "nothing"})["id"]
        found[path] = path.replace("{parent}", parent).replace("{id}", item)
    return found


def test_the_law_names_every_address() -> None:
    """The catalogue has the collections of the law, at the addresses of the law."""
    assert {path for path, _ in ADDRESSES} >= {
        f"/v1/{path}{item}"
        for path in (
            "users",
            "users/{parent}/addresses",
            "products",
            "orders",
            "orders/{parent}/line-items",
            "line-items",
            "events",
            "api-keys",
            "webhook-endpoints",
            "webhook-endpoints/{parent}/secrets",
            "webhook-deliveries",
            "webhook-redeliveries",
        )
        for item in ("", "/{id}")
    }


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda each: each.path)
def test_each_address_takes_the_methods_of_the_law(
    service: Service, filled: dict[str, str], address: Address
) -> None:
    """What an address takes is not 405; anything else is, with Allow naming exactly what it takes."""
    for method in EVERY_METHOD:
        if method == "DELETE" and method in address.allowed:
            continue
        body = b"[]" if method in ("POST", "PUT", "PATCH") else None
        reply = service.call(method, filled[address.path], body)
        if method in address.allowed:
            assert reply.status != 405, method
        else:
            assert reply.status == 405, method
            assert {each.strip() for each in reply.headers["allow"].split(",")} == address.allowed
            assert reply.json["type"].endswith("/problems/method-not-allowed")


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda each: each.path)
def test_options_says_what_can_be_done(service: Service, filled: dict[str, str], address: Address) -> None:
    """OPTIONS answers Allow, and Accept-Patch where there is PATCH, without a body."""
    reply = service.call("OPTIONS", filled[address.path])
    assert (reply.status, reply.body) == (204, b"")
    assert {each.strip() for each in reply.headers["allow"].split(",")} == address.allowed
    if "PATCH" in address.allowed:
        assert {each.strip() for each in reply.headers["accept-patch"].split(",")} == {
            "application/merge-patch+json",
            "application/json",
        }
    else:
        assert "accept-patch" not in reply.headers


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda each: each.path)
def test_head_is_get_without_the_body(service: Service, filled: dict[str, str], address: Address) -> None:
    """HEAD has the status and the headers of GET, the length included, and no body."""
    for path in (
        filled[address.path],
        f"{filled[address.path]}?limit=x",
        f"{filled[address.path]}?fields=id",
    ):
        got, head = service.get(path), service.call("HEAD", path)
        assert (head.status, head.body) == (got.status, b"")
        moving = {"x-request-id", "server-timing", "ratelimit"}
        assert {name: value for name, value in head.headers.items() if name not in moving} == {
            name: value for name, value in got.headers.items() if name not in moving
        }


def test_head_of_documents_and_problems(service: Service) -> None:
    """The same for documents, and for what is not there."""
    for path in ("/versions", "/livez", "/problems/invalid", "/v1/nothing", "/v1/users/nobody", "/nothing"):
        got, head = service.get(path), service.call("HEAD", path)
        assert (head.status, head.body) == (got.status, b"")
        assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))
        assert head.headers["content-type"] == got.headers["content-type"]


def test_a_document_takes_get_alone(service: Service) -> None:
    """Documents are read: another method is 405 with Allow."""
    for path in ("/versions", "/livez", "/readyz", "/metrics"):
        for method in ("POST", "PUT", "PATCH", "DELETE", "BREW"):
            reply = service.call(method, path, {})
            assert reply.status == 405
            assert {"GET", "HEAD"} <= {each.strip() for each in reply.headers["allow"].split(",")}


# --- Accept ---


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/*",
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "text/html, application/json;q=0.1",
        "text/html;q=0.9, */*;q=0.1",
        "application/vnd.tradepost.v1+json",
        " , application/json",
        "application/problem+json, application/json",
    ],
)
def test_json_is_given_to_whoever_takes_it(service: Service, accept: str) -> None:
    """Whatever Accept leaves room for JSON is answered with it."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    reply = service.get(path, accept=accept)
    assert reply.status == 200
    assert re.fullmatch(r"application/(vnd\.tradepost\.v1\+)?json", reply.headers["content-type"])


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "image/*", "application/json;q=0", "*/*;q=0", "text/*;q=1"]
)
def test_406_where_json_is_ruled_out(service: Service, accept: str) -> None:
    """Where Accept rules JSON out, the answer is 406 and nothing is done."""
    body = shop.user_body()
    for method, path, sent in (
        ("GET", "/v1/users", None),
        ("POST", "/v1/users", body),
        ("GET", "/users", None),
    ):
        reply = service.call(method, path, sent, accept=accept)
        assert (reply.status, reply.headers["content-type"]) == (406, "application/problem+json")
    assert shop.get(service, f"/v1/users?email={body['email']}")["items"] == []


# --- paths ---


def test_nothing_is_at_an_unknown_path(service: Service) -> None:
    """A path is exact: case, trailing and double slashes, more levels and less are 404, for every method."""
    user = shop.a_user(service)
    address = shop.an_address(service, user)
    for path in (
        "//",
        "/v1",
        "/v1/",
        "/v1//users",
        "//v1/users",
        "/v1/users/",
        "/v1/users//",
        f"/v1/users/{user['id']}/",
        f"/v1/users//{user['id']}",
        f"/v1/users/{user['id']}//addresses",
        f"/v1/users/{user['id']}/addresses/",
        f"/v1/users/{user['id']}/addresses/{address['id']}/",
        f"/v1/users/{user['id']}/addresses/{address['id']}/lines",
        f"/v1/users/{user['id']}/orders",
        f"/v1/users/{user['id']}/line-items",
        "/v1/addresses",
        f"/v1/addresses/{address['id']}",
        "/v1/Users",
        "/V1/users",
        "/v1/user",
        "/v1/line_items",
        "/v1/lineItems",
        "/v1/orders/x/y/z",
        "/v1/../v1/users",
        "/v1/./users",
        f"/v1/users/../users/{user['id']}",
        "/v1/users;x=1",
        "/v1/users%20",
        "/v1/users%2F",
        "/%2Fv1/users",
        f"/v1%2Fusers%2F{user['id']}%2F",
        "/users/",
        "//users",
        "/api/v1/users",
        "/robots.txt",
    ):
        for method in ("GET", "POST", "DELETE", "BREW"):
            reply = service.call(method, path, {} if method == "POST" else None)
            assert reply.status == 404, (method, path)
            assert reply.json["type"].endswith("/problems/not-found")


def test_percent_encoding_changes_no_address(service: Service) -> None:
    """An address with escaped letters is the same address (RFC 3986, 6.2.2.2)."""
    user = shop.a_user(service)
    escaped = "".join(f"%{ord(letter):02x}" for letter in user["id"])
    for path in (f"/v1/users/{escaped}", f"/v1/%75sers/{user['id']}", f"/%76%31/users/{user['id']}"):
        assert shop.get(service, path) == user


ODD = [
    "%00",
    "a%00b",
    "%C3%A9",
    "日本",
    "%F0%9F%98%80",
    "%FF%FE",
    "%E2%80%AE",
    "%0D%0AX:1",
    "%20",
    "'; DROP TABLE users;--",
    "%25",
    "%",
    "%zz",
    "a" * 3000,
    "%7F",
    "..",
    "*",
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_no_id_is_a_failure(service: Service, odd: str) -> None:
    """An id of any characters names nothing: 404 for every method of every address."""
    encoded = quote(odd, safe="%")
    for path, allowed in ADDRESSES:
        filled = path.replace("{parent}", encoded).replace("{id}", encoded)
        if filled == path:
            continue
        for method in allowed - {"OPTIONS"}:
            body: Any = {} if method in ("POST", "PUT", "PATCH") else None
            reply = service.call(method, filled, body)
            assert reply.status == 404, (method, filled, reply)
            assert "\n" not in "".join(f"{name}{value}" for name, value in reply.lines)


@given(path=st.text(max_size=60), method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS"]))
def test_no_path_is_a_failure(service: Service, path: str, method: str) -> None:
    """Whatever the path, the answer is a problem of the caller's, never ours."""
    for prefix in ("/", "/v1/", "/v1/users/"):
        encoded = prefix + quote(path, safe="/%", errors="replace")
        reply = service.call(method, encoded, {} if method in ("POST", "PUT") else None)
        assert reply.status < 500, encoded


@pytest.mark.parametrize("odd", ["%00", "%C3%A9", "%0D%0A", "a" * 3000])
def test_no_filter_or_reference_is_a_failure(service: Service, odd: str) -> None:
    """The same for ids in queries and bodies: they name nothing."""
    for path in (
        "/v1/orders?userId=",
        "/v1/line-items?orderId=",
        "/v1/line-items?productId=",
        "/v1/events?subject=",
    ):
        reply = service.get(path + odd)
        assert reply.status in (200, 400)
        assert reply.status == 400 or reply.json["items"] == []
