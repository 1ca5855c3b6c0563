"""Conditional requests: ETag, If-Match and If-None-Match (RFC 9110, 8.8 and 13)."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.given_clock import GivenClock
from tests.service import Reply, Service

STRONG = re.compile(r'"[\x21\x23-\x7e]+"')


def _address(service: Service) -> str:
    user = shop.a_user(service)
    return f"/v1/users/{user['id']}/addresses/{shop.an_address(service, user)['id']}"


def _key(service: Service) -> str:
    body = {"name": shop.unique(), "scopes": ["users:read"]}
    return f"/v1/api-keys/{service.made('/v1/api-keys', body)['id']}"


def _line_below(service: Service) -> str:
    order = shop.an_order(service)
    return f"/v1/orders/{order['id']}/line-items/{order['lineItems'][0]['id']}"


def _event(service: Service) -> str:
    (event,) = shop.events_of(service, f"users/{shop.a_user(service)['id']}")
    return f"/v1/events/{event['id']}"


ITEMS: dict[str, Callable[[Service], str]] = {
    "user": lambda s: f"/v1/users/{shop.a_user(s)['id']}",
    "address": _address,
    "product": lambda s: f"/v1/products/{shop.a_product(s)['id']}",
    "order": lambda s: f"/v1/orders/{shop.an_order(s)['id']}",
    "line item": lambda s: f"/v1/line-items/{shop.an_order(s)['lineItems'][0]['id']}",
    "line item below its order": _line_below,
    "API key": _key,
    "event": _event,
}
# A change of each that can be changed, in what is shown and in place.
CHANGES: dict[str, dict[str, Any]] = {
    "user": {"name": "Grace"},
    "address": {"city": "York"},
    "product": {"price": 3},
    "order": {"status": "FULFILLED"},
    "line item": {"quantity": 2},
    "line item below its order": {"quantity": 2},
}
LISTS: dict[str, Callable[[Service], str]] = {
    "users": lambda s: f"/v1/users?name={shop.a_user(s, name=shop.unique())['name']}",
    "addresses": lambda s: _address(s).rpartition("/")[0],
    "products": lambda s: f"/v1/products?sku={shop.a_product(s)['sku']}",
    "orders": lambda s: f"/v1/orders?userId={shop.an_order(s)['userId']}",
    "line items": lambda s: f"/v1/line-items?orderId={shop.an_order(s)['id']}",
    "line items below their order": lambda s: f"/v1/orders/{shop.an_order(s)['id']}/line-items",
    "an empty list": lambda s: f"/v1/users?name={shop.unique()}",
}
DOCUMENTS: dict[str, Callable[[Service], str]] = {
    "versions": lambda _: "/versions",
    "a problem's page": lambda _: "/problems/invalid",
    "liveness": lambda _: "/livez",
    "readiness": lambda _: "/readyz",
}
EVERYTHING = ITEMS | LISTS | DOCUMENTS


def _tag(service: Service, path: str) -> str:
    return service.get(path).headers["etag"]


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_get_has_a_strong_etag(service: Service, name: str) -> None:
    """Every GET of an item, a list or a document carries one strong ETag, the same while nothing changes."""
    path = EVERYTHING[name](service)
    replies = [service.get(path), service.get(path), service.call("HEAD", path)]
    assert [reply.status for reply in replies] == [200] * 3
    assert STRONG.fullmatch(replies[0].headers["etag"])
    assert len({reply.headers["etag"] for reply in replies}) == 1


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_has_one_etag_whatever_its_fields(service: Service, name: str) -> None:
    """An item's ETag is its row's version: the same whatever `fields` asks."""
    path = ITEMS[name](service)
    assert {_tag(service, path + query) for query in ("", "?fields=id", "?fields=", "?fields=id,id")} == {
        _tag(service, path)
    }


@pytest.mark.parametrize("name", CHANGES)
def test_an_etag_read_with_fields_works_in_if_match(service: Service, name: str) -> None:
    """A tag that was read with `fields` names the item's present state in If-Match."""
    path = ITEMS[name](service)
    tag = _tag(service, f"{path}?fields=id")
    assert service.call("PATCH", path, CHANGES[name], if_match=tag).status == 200


@pytest.mark.parametrize("name", CHANGES)
def test_a_write_answers_with_the_etag_that_a_get_shows(service: Service, name: str) -> None:
    """Every 200 of a write carries the strong ETag of the new state, so that it works in the next If-Match."""
    path = ITEMS[name](service)
    before = _tag(service, path)
    changed = service.call("PATCH", path, CHANGES[name], if_match=before)
    assert STRONG.fullmatch(changed.headers["etag"])
    assert changed.headers["etag"] == _tag(service, path) != before
    replaced = service.call("PUT", path, changed.json, if_match=changed.headers["etag"])
    assert (replaced.status, replaced.headers["etag"]) == (200, changed.headers["etag"])


def test_a_201_carries_the_etag_that_a_get_shows(service: Service) -> None:
    """Every 201 carries the strong ETag of the new item."""
    user, product = shop.a_user(service), shop.a_product(service)
    order = shop.an_order(service, (product, 1), user=user)
    line = {"productId": product["id"], "quantity": 1}
    for path, body in {
        "/v1/users": shop.user_body(),
        "/v1/products": shop.product_body(),
        "/v1/orders": shop.order_body(user, (product, 1)),
        f"/v1/users/{user['id']}/addresses": shop.address_body(),
        f"/v1/orders/{order['id']}/line-items": line,
        "/v1/line-items": {**line, "orderId": order["id"]},
        "/v1/api-keys": {"name": "n", "scopes": ["users:read"]},
    }.items():
        made = service.post(path, body)
        assert made.status == 201
        assert STRONG.fullmatch(made.headers["etag"])
        assert made.headers["etag"] == _tag(service, made.headers["location"]), path


# --- If-None-Match on GET ---


def _variants(tag: str) -> dict[str, bool]:
    """Fields, and whether they name the tag by weak comparison."""
    inner = tag.strip('"')
    return {
        tag: True,
        f"W/{tag}": True,
        f'"x", {tag}': True,
        f'{tag},"x"': True,
        f'W/"x" ,  W/{tag} , "y"': True,
        f'"a,b", {tag}': True,
        f'"", {tag}': True,
        f'"x", , {tag}': True,
        f"{tag}, ": True,
        "*": True,
        " * ": True,
        f'"{inner}-gzip"': True,
        f'W/"{inner}-gzip"': True,
        f'"{inner}x"': False,
        f'"x{inner}"': False,
        '"x"': False,
        'W/"x", "y"': False,
        '"*"': False,
        '""': False,
        f'"{inner[:-1]}"': False,
        f'"{inner.upper()}!"': False,
    }


@pytest.mark.parametrize("name", ["user", "order", "API key", "event", "users", "an empty list", "versions"])
def test_if_none_match_compares_weakly(service: Service, name: str) -> None:
    """A GET whose If-None-Match names the present tag, strong or weak, in a list or as *, is 304; else it is 200."""
    path = EVERYTHING[name](service)
    tag = _tag(service, path)
    expected = {field: 304 if names else 200 for field, names in _variants(tag).items()}
    for method in ("GET", "HEAD"):
        found = {field: service.call(method, path, if_none_match=field).status for field in expected}
        assert found == expected, method


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_304_has_no_body_and_the_fields_of_the_200(service: Service, name: str) -> None:
    """A 304 has no body and the ETag, Vary and Cache-Control that the 200 would have (RFC 9110, 15.4.5)."""
    path = EVERYTHING[name](service)
    whole = service.get(path)
    reply = service.get(path, if_none_match=whole.headers["etag"])
    assert (reply.status, reply.body) == (304, b"")
    for field in ("etag", "vary", "cache-control", "content-location", "expires"):
        assert reply.headers.get(field) == whole.headers.get(field), field
    assert "content-type" not in reply.headers
    assert int(reply.headers.get("content-length", "0")) in (0, len(whole.body))


@pytest.mark.parametrize("name", ITEMS | LISTS)
def test_what_is_private_says_so(service: Service, name: str) -> None:
    """`Cache-Control: private, no-cache`, and Vary names what the answer depends on."""
    headers = service.get(EVERYTHING[name](service)).headers
    assert headers["cache-control"] == "private, no-cache"
    assert {"accept", "authorization"} <= {each.strip().lower() for each in headers["vary"].split(",")}


def test_vary_of_an_unprefixed_path_names_what_chooses_its_version(service: Service) -> None:
    """Without a version in the path the answer depends on API-Version too, and Vary says so."""
    path = f"/users/{shop.a_user(service)['id']}"
    for reply in (service.get(path), service.get("/users?limit=1"), service.get(path, if_none_match="*")):
        assert "api-version" in reply.headers["vary"].lower()


def test_a_304_costs_nothing_of_the_rate_limit(new_service: Callable[..., Service]) -> None:
    """However many 304s, the budget and what RateLimit says of it stay as they were."""
    service = new_service("sqlite", rate_limit="4/hour")
    path = f"/v1/users/{shop.a_user(service, name='Ada')['id']}"
    first = service.get(path)
    left = first.headers["ratelimit"]
    lists = "/v1/users?fields=name"
    other = service.get(lists)
    assert (first.status, other.status) == (200, 200)
    for _ in range(10):
        assert service.get(path, if_none_match=first.headers["etag"]).status == 304
        last = service.get(lists, if_none_match=other.headers["etag"])
        assert last.status == 304
    assert _remaining(last) == _remaining(other) == int(left.partition("r=")[2].partition(";")[0]) - 1
    assert [service.get(path).status for _ in range(2)] == [200, 429]


def _remaining(reply: Reply) -> int:
    return int(reply.headers["ratelimit"].partition("r=")[2].partition(";")[0])


# --- If-Match and If-None-Match on writes ---


def _writes(path: str, name: str, body: Any) -> list[tuple[str, Any]]:
    del path
    return [("PUT", body | CHANGES[name]), ("PATCH", CHANGES[name]), ("DELETE", None)]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_write_whose_condition_fails_is_412_and_changes_nothing(
    service: Service, name: str, method: str
) -> None:
    """If-Match compares strongly, If-None-Match weakly; a 412 carries the present ETag, and nothing changed."""
    path = ITEMS[name](service)
    before = service.get(path)
    tag = before.headers["etag"]
    body = dict(_writes(path, name, before.json))[method]
    fields = [
        {"if_match": '"0.none"'},
        {"if_match": f"W/{tag}"},
        {"if_match": f'W/{tag}, "x"'},
        {"if_match": '""'},
        {"if_match": '"*"'},
        {"if_none_match": "*"},
        {"if_none_match": tag},
        {"if_none_match": f"W/{tag}"},
        {"if_none_match": f'"x", {tag}'},
        {"if_match": tag, "if_none_match": tag},
        {"if_match": '"x"', "if_none_match": '"y"'},
    ]
    for given in fields:
        reply = service.call(method, path, body, **given)
        assert (reply.status, reply.headers.get("etag")) == (412, tag), given
        assert reply.json["type"].endswith("/problems/precondition-failed")
    after = service.get(path)
    assert (after.body, after.headers["etag"]) == (before.body, tag)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "condition",
    [
        {"if_match": "{tag}"},
        {"if_match": "*"},
        {"if_match": '"x", {tag}'},
        {"if_match": 'W/"x",{tag} , "y"'},
        {"if_match": '"{inner}-gzip"'},
        {"if_none_match": '"x"'},
        {"if_none_match": 'W/"x", "y"'},
        {"if_match": "{tag}", "if_none_match": '"x"'},
    ],
)
def test_a_write_whose_condition_holds_is_done(
    service: Service, method: str, condition: dict[str, str]
) -> None:
    """A tag alone or in a list, *, a proxy's -gzip suffix, and an If-None-Match that names another state hold."""
    address = ITEMS["address"](service)
    read = service.get(address)
    tag = read.headers["etag"]
    given = {name: field.format(tag=tag, inner=tag.strip('"')) for name, field in condition.items()}
    body = dict(_writes(address, "address", read.json))[method]
    reply = service.call(method, address, body, **given)
    assert reply.status == (204 if method == "DELETE" else 200)
    assert service.get(address).status == (404 if method == "DELETE" else 200)


def test_conditions_hold_for_the_revocation_of_a_key(service: Service) -> None:
    """If-Match is honoured where an API key is revoked, too."""
    path = ITEMS["API key"](service)
    assert service.call("DELETE", path, if_match='"x"').status == 412
    assert service.get(path).json["revokedAt"] is None
    tag = _tag(service, path)
    assert service.call("DELETE", path, if_match=f"W/{tag}").status == 412
    assert service.call("DELETE", path, if_match=f'{tag[:-1]}-gzip"').status == 204


@pytest.mark.parametrize("name", ["user", "order", "users", "event"])
def test_if_match_on_a_get_is_judged_first(service: Service, name: str) -> None:
    """If-Match is evaluated before If-None-Match, on GET as well: 412 where it fails, whatever the other says."""
    path = EVERYTHING[name](service)
    tag = _tag(service, path)
    assert service.get(path, if_match='"x"').status == 412
    assert service.get(path, if_match='"x"', if_none_match=tag).status == 412
    assert service.get(path, if_match=f"W/{tag}").status == 412
    assert service.get(path, if_match=tag).status == 200
    assert service.get(path, if_match=tag, if_none_match=tag).status == 304
    assert service.get(path, if_match="*").status == 200


@pytest.mark.parametrize("field", ["abc", '"abc', 'abc"', "W/", 'w/"x"', '"a" "b"', "5", "'x'"])
def test_a_condition_that_is_no_list_of_tags_is_400(service: Service, field: str) -> None:
    """A bad header is 400, and nothing is changed under it."""
    path = ITEMS["user"](service)
    for name in ("if_match", "if_none_match"):
        assert service.get(path, **{name: field}).status == 400
        assert service.call("PATCH", path, {"name": "Eve"}, **{name: field}).status == 400
    assert service.get(path).json["name"] == "Ada"


# --- what comes before ---


def test_what_refuses_a_request_comes_before_its_conditions(service: Service) -> None:
    """401, 403, 404, 405, 406 and 415 come before 412 (RFC 9110, 13.2.1)."""
    path = ITEMS["user"](service)
    reader = service.new_key("users:read")
    gone = ITEMS["user"](service)
    service.call("DELETE", gone)
    stale = {"if_match": '"0.none"'}
    for method, body in (("PUT", shop.user_body()), ("PATCH", {"name": "Eve"}), ("DELETE", None)):
        assert service.call(method, path, body, key=None, **stale).status == 401
        assert service.call(method, path, body, key="tp_wrong_key", **stale).status == 401
        assert service.call(method, path, body, key=reader, **stale).status == 403
        assert service.call(method, "/v1/users/nobody", body, **stale).status == 404
        assert service.call(method, gone, body, **stale).status == 404
        assert service.call(method, gone, body, if_match="*").status == 404
        assert service.call(method, "/v1/users", body, **stale).status == 405
        assert service.call(method, path, body, accept="text/html", **stale).status == 406
        if body is not None:
            assert service.call(method, path, body, content_type="text/plain", **stale).status == 415
        assert service.call(method, path, body, **stale).status == 412
    for headers in (stale, {"if_none_match": "*"}):
        assert service.get(path, key=None, **headers).status == 401
        assert service.get(path, key=service.new_key("orders:read"), **headers).status == 403
        assert service.get(gone, **headers).status == 404
        assert service.get(f"{path}?fields=nothing", **headers).status == 400


def test_429_comes_before_the_conditions(new_service: Callable[..., Service]) -> None:
    """A request over the limit is 429, whatever its conditions."""
    service = new_service("sqlite", rate_limit="2/hour")
    path = ITEMS["user"](service)
    tag = _tag(service, path)
    assert service.get(path, if_none_match='"x"').status == 429
    assert service.call("PATCH", path, {"name": "Eve"}, if_match='"x"').status == 429
    assert service.get(path, if_match='"x"', if_none_match=tag).status == 429


def test_410_comes_before_the_conditions(new_service: Callable[..., Service]) -> None:
    """A retired version is 410, whatever the conditions."""
    clock = GivenClock("2026-11-20")
    service = new_service(
        "sqlite", clock=clock, api_versions='{"v1": {"deprecated": "2026-01-01", "sunset": "2026-12-01"}}'
    )
    path = ITEMS["user"](service)
    tag = _tag(service, path)
    clock.set("2026-12-02")
    assert service.get(path, if_none_match=tag).status == 410
    assert service.call("PATCH", path, {"name": "Eve"}, if_match='"x"').status == 410


# --- changes and tags ---


@pytest.mark.parametrize("name", CHANGES)
def test_a_patch_that_changes_nothing_keeps_the_etag_and_says_nothing(service: Service, name: str) -> None:
    """A write of what is there already is 200, changes no ETag and no updatedAt, and emits no event."""
    path = ITEMS[name](service)
    read = service.get(path)
    subjects = {
        "user": f"users/{read.json['id']}",
        "address": f"users/{read.json.get('userId')}",
        "product": f"products/{read.json['id']}",
        "order": f"orders/{read.json['id']}",
    }
    subject = subjects.get(name, f"orders/{read.json.get('orderId')}")
    said = shop.told(service, subject)
    same = {member: read.json[member] for member in CHANGES[name]}
    for method, body in (("PATCH", {}), ("PATCH", same), ("PATCH", read.json), ("PUT", read.json)):
        reply = service.call(method, path, body)
        assert (reply.status, reply.json, reply.headers["etag"]) == (200, read.json, read.headers["etag"])
    assert shop.told(service, subject) == said


class _Watched:
    """Remembers what each address showed under each tag, and whether a tag ever stood for two states."""

    def __init__(self, service: Service, *paths: str) -> None:
        self._service = service
        self._seen: dict[str, dict[str, bytes]] = {path: {} for path in paths}
        self._last: dict[str, tuple[str, bytes]] = {}
        self.look()

    def look(self) -> set[str]:
        """The addresses that show something else than at the last look; fails where the tag does not tell so."""
        changed = set()
        for path, seen in self._seen.items():
            reply = self._service.get(path)
            tag, body = reply.headers["etag"], reply.body
            if path in self._last:
                old_tag, old_body = self._last[path]
                assert (tag == old_tag) == (body == old_body), path
                stale = self._service.get(path, if_none_match=old_tag)
                assert stale.status == (304 if body == old_body else 200), path
                if body != old_body:
                    changed.add(path)
            assert seen.setdefault(tag, body) == body, f"{path}: one tag for two states"
            self._last[path] = (tag, body)
        return changed


def test_every_change_of_what_is_shown_changes_the_etag(service: Service) -> None:
    """Stock taken by an order, a line changed at its own address, a status: whatever shows it has a new tag."""
    user, one, other = shop.a_user(service), shop.a_product(service), shop.a_product(service)
    order = shop.an_order(service, (one, 2), (one, 1), user=user)
    line = order["lineItems"][0]["id"]
    orders, lines = f"/v1/orders/{order['id']}", f"/v1/line-items/{line}"
    below = f"{orders}/line-items"
    goods, others = f"/v1/products/{one['id']}", f"/v1/products/{other['id']}"
    all_goods, all_orders = f"/v1/products?sku={one['sku']}", f"/v1/orders?userId={user['id']}"
    all_lines = f"/v1/line-items?orderId={order['id']}"
    watched = _Watched(
        service, orders, lines, below, f"{below}/{line}", goods, others, all_goods, all_orders, all_lines
    )
    stock, shown, whole = {goods, all_goods}, {orders, all_orders}, {below, all_lines}
    mine = {lines, f"{below}/{line}"}

    def done(method: str, path: str, body: Any = None) -> Any:
        reply = service.call(method, path, body)
        assert reply.status < 300, reply
        return reply.json if reply.body else None

    assert watched.look() == set()
    done("PATCH", lines, {"quantity": 3})
    assert watched.look() == mine | whole | shown | stock
    done("PATCH", f"{below}/{line}", {"quantity": 2})
    assert watched.look() == mine | whole | shown | stock
    added = done("POST", below, {"productId": other["id"], "quantity": 1})
    assert watched.look() == whole | shown | {others}
    done("PATCH", others, {"price": 9})
    assert watched.look() == {others}
    done("DELETE", f"/v1/line-items/{added['id']}")
    assert watched.look() == whole | shown | {others}
    done("PATCH", orders, {"shippingAddressId": shop.an_address(service, user)["id"]})
    assert watched.look() == shown
    third = shop.an_order(service, (other, 1), user=user)
    assert watched.look() == {others, all_orders}
    done("PATCH", f"/v1/orders/{third['id']}", {"status": "CANCELLED"})
    assert watched.look() == {others, all_orders}
    done("DELETE", f"/v1/orders/{third['id']}")
    assert watched.look() == {all_orders}
    done("PUT", goods, {**shop.get(service, goods), "stock": None})
    assert watched.look() == stock
    done("PATCH", goods, {"stock": 50})
    assert watched.look() == stock
    done("PATCH", orders, {"status": "CANCELLED"})
    assert watched.look() == shown | stock
    assert shop.get(service, goods)["stock"] == 53


def test_a_changed_user_address_and_key_have_new_tags(service: Service) -> None:
    """The same for users, their addresses, and a key that is revoked."""
    address = ITEMS["address"](service)
    user, addresses = address.partition("/addresses")[0], address.rpartition("/")[0]
    key = ITEMS["API key"](service)
    watched = _Watched(service, user, addresses, address, key)
    service.call("PATCH", address, {"line2": "Back door"})
    assert watched.look() == {address, addresses}
    service.call("PATCH", user, {"status": "DEACTIVATED"})
    assert watched.look() == {user}
    service.call("PATCH", user, {"status": "ACTIVE"})
    assert watched.look() == {user}
    service.call("DELETE", key)
    assert watched.look() == {key}
    service.call("DELETE", key)
    assert watched.look() == set()


def test_one_of_many_writers_with_one_tag_wins(service: Service) -> None:
    """Of twenty writers at once that all read the same state, one is done and the others are 412."""
    path = ITEMS["product"](service)
    tag = _tag(service, path)
    replies = service.calls(*[("PATCH", path, {"price": n}) for n in range(20)], if_match=tag)
    assert sorted(reply.status for reply in replies) == [200] + [412] * 19
    (winner,) = (reply for reply in replies if reply.status == 200)
    assert service.get(path).json["price"] == winner.json["price"]
