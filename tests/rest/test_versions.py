"""Versions: the life of one, how a request chooses one, and how a second differs from the first."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import shop
from tests.given_clock import GivenClock
from tests.rest.test_lists import LINK
from tests.service import Reply, Service
from tradepost import settings
from tradepost.versions.changes import Rename, Version

IMF_FIXDATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
GUIDE = "https://docs.example.com/moving"
BEFORE, SINCE, LAST = "2026-05-31T23:59:59.999Z", "2026-06-01T00:00:00Z", "2026-12-01T00:00:00Z"
AFTER = "2026-12-01T00:00:00.001Z"


def _announced(**dates: str) -> str:
    inside = ", ".join(f'"{name}": "{value}"' for name, value in dates.items())
    return f'{{"v1": {{{inside}}}}}'


@pytest.fixture
def clock() -> GivenClock:
    return GivenClock(BEFORE)


def _names(reply: Reply) -> set[str]:
    """Which of the headers of a life the answer carries."""
    found = {name for name in ("deprecated", "deprecation", "sunset") if name in reply.headers}
    return found | ({"link"} if "deprecation" in _links(reply) else set())


def _links(reply: Reply) -> dict[str, str]:
    return {
        relation: target
        for target, relation in re.findall(r'<([^>]*)>; rel="([a-z-]+)"', reply.headers.get("link", ""))
    }


def test_an_active_version_says_nothing(service: Service) -> None:
    """While a version is active no header speaks of its end."""
    for reply in (service.get("/v1/users"), service.get("/v1/nothing"), service.get("/users?limit=1")):
        assert _names(reply) == set()


def test_the_life_of_a_version(new_service: Callable[..., Service], clock: GivenClock) -> None:
    """Active, deprecated, sunset announced, retired: each phase by the clock, with its headers."""
    service = new_service(
        "sqlite", clock=clock, api_versions=_announced(deprecated=SINCE, sunset=LAST, link=GUIDE)
    )
    assert _names(service.get("/v1/users")) == set()
    for at in (SINCE, "2026-09-01", LAST):
        clock.set(at)
        reply = service.get("/v1/users")
        assert reply.status == 200
        assert reply.headers["deprecated"] == "true"
        assert reply.headers["deprecation"] == "Mon, 01 Jun 2026 00:00:00 GMT"
        assert reply.headers["sunset"] == "Tue, 01 Dec 2026 00:00:00 GMT"
        assert _links(reply)["deprecation"] == GUIDE
        assert "first" in _links(reply)
    clock.set(AFTER)
    reply = service.get("/v1/users")
    assert (reply.status, reply.headers["content-type"]) == (410, "application/problem+json")
    assert reply.json["type"].endswith("/problems/version-retired")
    assert _names(reply) == {"deprecated", "deprecation", "sunset", "link"}


def test_a_deprecated_version_without_an_end_has_no_sunset(
    new_service: Callable[..., Service], clock: GivenClock
) -> None:
    """Deprecation alone sends Deprecated, Deprecation and Link; it goes on for as long as nobody sets an end."""
    service = new_service("sqlite", clock=clock, api_versions=_announced(deprecated=SINCE))
    clock.set("2500-01-01")
    reply = service.get("/v1/users")
    assert (reply.status, _names(reply)) == (200, {"deprecated", "deprecation", "link"})
    assert _links(reply)["deprecation"].startswith("http")


def test_the_dates_can_be_those_of_rfc_9745(new_service: Callable[..., Service], clock: GivenClock) -> None:
    """One setting writes Deprecation as @<unix time> everywhere; Sunset stays an HTTP-date (RFC 8594)."""
    service = new_service(
        "sqlite",
        clock=clock,
        api_versions=_announced(deprecated=SINCE, sunset=LAST),
        deprecation_format="rfc9745",
    )
    clock.set(SINCE)
    for path in ("/v1/users", "/v1/users/nobody"):
        headers = service.get(path).headers
        assert headers["deprecation"] == "@1780272000"
        assert IMF_FIXDATE.fullmatch(headers["sunset"])


def _everything(service: Service) -> dict[str, Reply]:
    """An answer of every kind that a version gives."""
    user, product = shop.a_user(service), shop.a_product(service)
    path = f"/v1/users/{user['id']}"
    call = service.call
    return {
        "200": call("GET", path),
        "200 list": call("GET", "/v1/users?limit=1"),
        "200 put": call("PUT", path, user),
        "200 patch": call("PATCH", path, {"name": "Bo"}),
        "201": call("POST", "/v1/orders", shop.order_body(user, (product, 1))),
        "204 patch": call("PATCH", path, {"name": "Cy"}, prefer="return=minimal"),
        "head": call("HEAD", path),
        "options": call("OPTIONS", path),
        "304": call("GET", path, if_none_match="*"),
        "400": call("GET", "/v1/users?limit=x"),
        "400 body": call("POST", "/v1/users", b"{"),
        "401": call("GET", path, key=None),
        "403": call("GET", path, key=service.new_key("orders:read")),
        "404 item": call("GET", "/v1/users/nobody"),
        "404 path": call("GET", "/v1/nothing"),
        "404 root": call("GET", "/v1"),
        "404 slash": call("GET", "/v1/users/"),
        "405": call("DELETE", "/v1/users"),
        "405 odd": call("BREW", path),
        "406": call("GET", path, accept="text/html"),
        "409": call("POST", "/v1/users", shop.user_body(email=user["email"])),
        "412": call("PATCH", path, {}, if_match='"x"'),
        "413": call("POST", "/v1/users", b" " * (2 << 20)),
        "415": call("POST", "/v1/users", b"", content_type="text/plain"),
        "422": call("POST", "/v1/users", {}),
        "204 delete": call("DELETE", path),
    }


def test_every_answer_of_a_deprecated_version_says_so(
    new_service: Callable[..., Service], clock: GivenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The headers are in every response of the version: successes, errors, HEAD, OPTIONS, 304 and 500."""
    service = new_service("sqlite", clock=clock, api_versions=_announced(deprecated=SINCE, sunset=LAST))
    clock.set(SINCE)
    replies = _everything(service)
    with monkeypatch.context() as patched:
        patched.setattr(service.app.rest.performer, "perform", None)
        replies["500"] = service.call("POST", "/v1/users", shop.user_body())
    for name, reply in replies.items():
        assert name.startswith(str(reply.status)) or name in ("head", "options"), (name, reply)
    silent = {
        name
        for name, reply in replies.items()
        if _names(reply) != {"deprecated", "deprecation", "sunset", "link"}
    }
    assert silent == set()


def test_every_request_to_a_retired_version_is_410(
    new_service: Callable[..., Service], clock: GivenClock
) -> None:
    """Past the sunset every request to the version gets 410, whoever asks for whatever, and nothing is done."""
    service = new_service("sqlite", clock=clock, api_versions=_announced(deprecated=SINCE, sunset=LAST))
    body = shop.user_body()
    clock.set(AFTER)
    found = {
        name: service.call(method, path, sent, key=key).status
        for name, (method, path, sent, key) in {
            "list": ("GET", "/v1/users", None, ""),
            "item": ("GET", "/v1/users/nobody", None, ""),
            "write": ("POST", "/v1/users", body, ""),
            "no key": ("GET", "/v1/users", None, None),
            "no path": ("GET", "/v1/nothing", None, ""),
            "no path, no key": ("GET", "/v1/nothing/at/all", None, None),
            "the version itself": ("GET", "/v1", None, ""),
            "method": ("DELETE", "/v1/users", None, ""),
            "by its number": ("GET", "/users?version=1", None, ""),
            "by default": ("GET", "/users", None, ""),
        }.items()
    }
    found["by Accept"] = service.get("/users", accept="application/vnd.tradepost.v1+json").status
    found["by date"] = service.get("/users", api_version="2026-11-01").status
    found["by date, write"] = service.post("/users", body, api_version="2026-11-01").status
    assert {name: status for name, status in found.items() if status != 410} == {}
    clock.set(SINCE)
    assert shop.get(service, f"/v1/users?email={body['email']}")["items"] == []
    assert service.get("/v2/users").status == 404


@pytest.mark.parametrize(
    "bad",
    [
        "x",
        "5",
        '{"v1": 5}',
        '{"v1": {"sunset": "soon"}}',
        '{"v1": {"deprecated": 5}}',
        '{"v1": {"end": "2026-01-01"}}',
    ],
)
def test_bad_dates_stop_the_start(bad: str) -> None:
    """An announcement that cannot be read is refused with one line that names the setting."""
    with pytest.raises(settings.BadSetting, match="TRADEPOST_API_VERSIONS") as caught:
        settings.load({"TRADEPOST_API_VERSIONS": bad})
    assert "\n" not in str(caught.value)


# --- choosing one ---

SECOND = (
    Version(1, "2026-01-01"),
    Version(
        2,
        "2027-05-01",
        (
            Rename("product", "name", "title"),
            Rename("product", "price", "cost"),
            Rename("user", "email", "mail"),
            Rename("address", "postal_code", "zip"),
            Rename("line_item", "quantity", "pieces"),
            Rename("order", "line_items", "lines"),
            Rename("order", "total", "sum"),
        ),
    ),
)


@pytest.fixture(scope="module")
def both(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service with a second version that calls some things by other names."""
    return new_service(engine, versions=SECOND)


def _served(reply: Reply) -> int:
    """Which version answered, told by what it calls a product's name."""
    assert reply.status in (200, 201), reply
    items = reply.json.get("items", [reply.json])
    return 2 if "title" in items[0] else 1


VND = "application/vnd.tradepost.v{}+json"


def test_an_unprefixed_path_is_served_by_the_version_that_is_named(both: Service) -> None:
    """Accept, API-Version and ?version name a version; without any the newest active one serves."""
    product = shop.a_product(both)
    for path in (f"/products/{product['id']}", f"/products?sku={product['sku']}"):
        join = "&" if "?" in path else "?"
        assert _served(both.get(path)) == 2
        assert _served(both.get(path, accept="application/json")) == 2
        assert _served(both.get(path, accept="*/*")) == 2
        for number in (1, 2):
            named = both.get(path, accept=VND.format(number))
            assert _served(named) == number
            assert named.headers["content-type"] == VND.format(number)
            assert _served(both.get(f"{path}{join}version={number}")) == number
            assert _served(both.get(f"/v{number}{path}")) == number
        for day, number in {
            "2026-01-01": 1,
            "2026-11-20": 1,
            "2027-04-30": 1,
            "2027-05-01": 2,
            "2030-01-01": 2,
        }.items():
            assert _served(both.get(path, api_version=day)) == number, day


def test_writes_to_an_unprefixed_path_choose_alike(both: Service) -> None:
    """A POST, PUT or PATCH is read in the version that is named, and Location is under that version."""
    body = shop.product_body()
    other = {
        ("title" if name == "name" else "cost" if name == "price" else name): value
        for name, value in body.items()
    }
    for number, headers, query in (
        (1, {"accept": VND.format(1)}, ""),
        (1, {"api_version": "2026-05-05"}, ""),
        (1, {}, "?version=1"),
        (2, {}, ""),
        (2, {"accept": VND.format(2)}, ""),
    ):
        sent = {**(body if number == 1 else other), "sku": shop.unique()}
        made = both.post(f"/products{query}", sent, **headers)
        assert _served(made) == number
        assert made.headers["location"] == f"/v{number}/products/{made.json['id']}"
        renamed = {"name" if number == 1 else "title": "Lamp"}
        patched = both.call("PATCH", f"/products/{made.json['id']}{query}", renamed, **headers)
        assert _served(patched) == number
        assert both.call("PUT", f"/products/{made.json['id']}{query}", patched.json, **headers).status == 200
        assert both.get(made.headers["location"]).status == 200


def test_the_location_of_a_sub_item_is_under_its_version(both: Service) -> None:
    """Location is the path of the new item at the address it was posted to, under the version that made it."""
    user = shop.a_user(both)
    body = {name: value for name, value in shop.address_body().items() if name != "postalCode"}
    for path, headers, version in (
        (f"/users/{user['id']}/addresses", {}, "v2"),
        (f"/v2/users/{user['id']}/addresses", {}, "v2"),
        (f"/users/{user['id']}/addresses", {"accept": VND.format(1)}, "v1"),
    ):
        made = both.post(path, {**body, "zip" if version == "v2" else "postalCode": "LS1"}, **headers)
        assert made.headers["location"] == f"/{version}/users/{user['id']}/addresses/{made.json['id']}"


def test_an_unknown_version_is_refused_where_it_is_named(both: Service) -> None:
    """An unknown version is 404 in a path, 406 in Accept, 400 in a header or a query."""
    path = f"/products/{shop.a_product(both)['id']}"
    for name in ("v0", "v3", "v10", "v01", "v1.0", "V1", "v", "v-1", "v٣", "v²"):
        assert both.get(f"/{name}{path}").status == 404, name
    for number in ("3", "0", "99999999999999999999"):
        assert both.get(path, accept=VND.format(number)).status == 406, number
    for day in (
        "2025-12-31",
        "0000-00-00",
        "not-a-date",
        "2026-99-99",
        "2026-02-30",
        "1",
        "v1",
        "",
        "zzzzzzzzzz",
    ):
        assert both.get(path, api_version=day).status == 400, day
    for number in ("3", "0", "", "x", "-1", "1.0", "٣"):
        for where in (path, "/products"):
            assert both.get(f"{where}?version={number}").status == 400, number


def test_a_query_that_names_a_version_is_kept_in_links(both: Service) -> None:
    """The next page is of the version that the first was of."""
    name = shop.unique()
    for _ in range(3):
        shop.a_product(both, name=name)
    reply = both.get(f"/products?version=1&name={name}&limit=1")
    seen = 1
    while reply.json["next"] is not None:
        (target,) = (target for target, relation in LINK.findall(reply.headers["link"]) if relation == "next")
        parts = urlsplit(target)
        assert "version=1" in parts.query
        reply = both.get(f"{parts.path}?{parts.query}")
        assert _served(reply) == 1
        seen += 1
        assert seen <= 3
    assert seen == 3


def test_an_unprefixed_answer_says_what_it_varies_by(both: Service) -> None:
    """One address with two representations has two strong tags, and Vary names what chooses between them."""
    path = f"/products/{shop.a_product(both)['id']}"
    one, two = (both.get(path, accept=VND.format(number)) for number in (1, 2))
    assert one.headers["etag"] != two.headers["etag"]
    assert both.get(path, accept=VND.format(2), if_none_match=one.headers["etag"]).status == 200
    varies = {each.strip().lower() for each in one.headers["vary"].split(",")}
    assert {"accept", "api-version", "authorization"} <= varies


def test_the_default_is_the_newest_active_else_the_newest_not_retired(
    new_service: Callable[..., Service],
) -> None:
    """As versions age the default moves to the newest active one, then to the newest that is left, then it is 410."""
    clock = GivenClock("2027-06-01")
    service = new_service(
        "sqlite",
        clock=clock,
        versions=SECOND,
        api_versions='{"v1": {"deprecated": "2029-01-01", "sunset": "2032-01-01"},'
        ' "v2": {"deprecated": "2028-01-01", "sunset": "2031-01-01"}}',
    )
    path = f"/products/{shop.a_product(service)['id']}"
    for at, number in (("2027-06-01", 2), ("2028-06-01", 1), ("2029-06-01", 2), ("2031-06-01", 1)):
        clock.set(at)
        reply = service.get(path)
        assert _served(reply) == number, at
        assert ("deprecated" in reply.headers) == (at > "2029")
    assert service.get(path, accept=VND.format(2)).status == 410
    assert service.get(f"/v2{path}").status == 410
    assert service.get(f"/v1{path}").status == 200
    clock.set("2032-06-01")
    assert service.get(path).status == 410


def test_versions_are_listed_with_their_phases_and_dates(new_service: Callable[..., Service]) -> None:
    """/versions shows each version, its phase by the clock, and its dates in RFC 3339."""
    clock = GivenClock("2027-06-01")
    service = new_service(
        "sqlite",
        clock=clock,
        versions=SECOND,
        api_versions='{"v1": {"deprecated": "2028-01-01", "sunset": "2029-01-01", "link": "https://x.example/"}}',
    )

    def shown() -> dict[str, Any]:
        return {each["version"]: each for each in shop.get(service, "/versions")["items"]}

    assert set(shown()) == {"v1", "v2"}
    phases = []
    for at in ("2027-06-01", "2028-06-01", "2029-06-01"):
        clock.set(at)
        phases.append((shown()["v1"]["phase"], shown()["v2"]["phase"]))
    first, second = zip(*phases, strict=True)
    assert (first[0], first[-1], len(set(first))) == ("active", "retired", 3)
    assert set(second) == {"active"}
    v1 = shown()["v1"]
    assert (v1["deprecatedAt"], v1["sunsetAt"]) == ("2028-01-01T00:00:00.000Z", "2029-01-01T00:00:00.000Z")
    assert v1["link"] == "https://x.example/"
    before = service.get("/versions").headers["etag"]
    clock.set("2028-06-01")
    assert service.get("/versions").headers["etag"] != before


# --- a second version ---


def test_the_second_version_speaks_by_its_own_names(both: Service) -> None:
    """Bodies of /v2 use the new names in both directions, and /v1 goes on with the old ones, on the same items."""
    body = {"sku": shop.unique(), "title": "Lantern", "cost": 2.5, "currency": "GBP"}
    made = both.made("/v2/products", body)
    assert {name: made[name] for name in body} == body
    assert not {"name", "price"} & set(made)
    old = shop.get(both, f"/v1/products/{made['id']}")
    assert (old["name"], old["price"]) == ("Lantern", 2.5)
    assert not {"title", "cost"} & set(old)
    path = f"/v2/products/{made['id']}"
    assert both.call("PATCH", path, {"title": "Lamp", "cost": 3}).json["title"] == "Lamp"
    assert both.call("PUT", path, {**made, "cost": 4}).json["cost"] == 4
    old = shop.get(both, f"/v1/products/{made['id']}")
    assert (old["name"], old["price"]) == ("Lantern", 4)
    assert both.call("PATCH", path, {"title": None}).status == 422


def test_the_second_version_refuses_the_old_names(both: Service) -> None:
    """An old name is an unknown member, filter, sort or field in /v2, and the new one is in /v1."""
    product = shop.a_product(both)
    for version, name, price in (("v2", "name", "price"), ("v1", "title", "cost")):
        path = f"/{version}/products"
        reply = both.call("PATCH", f"{path}/{product['id']}", {name: "x", price: 1})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {name, price})
        for query in (f"{name}=x", f"sort={name}", f"sort=-{price}", f"fields={name}", f"{price}[gte]=1"):
            assert both.get(f"{path}?{query}").status == 400, (version, query)
        assert both.get(f"{path}/{product['id']}?fields={name}").status == 400


def test_errors_of_the_second_version_use_its_names(both: Service) -> None:
    """`field` and `pointer` name members as the version does: types, rules, duplicates and nested ones."""

    def said(method: str, path: str, body: Any) -> dict[str, str]:
        problem = both.call(method, path, body).json
        return {error["field"]: error["pointer"] for error in problem["errors"]}

    assert said("POST", "/v2/products", {"sku": "s", "title": 5, "cost": -1, "currency": "GBP"}) == {
        "title": "#/title",
        "cost": "#/cost",
    }
    body = {"sku": shop.unique(), "title": "x", "cost": 1.001, "currency": "GBP"}
    assert said("POST", "/v2/products", body) == {"cost": "#/cost"}
    user = shop.a_user(both)
    assert said("POST", "/v2/users", {"name": "A", "mail": user["email"]}) == {"mail": "#/mail"}
    assert said("POST", "/v1/users", shop.user_body(email=user["email"])) == {"email": "#/email"}
    assert said("POST", "/v2/users", {}) == {"name": "#/name", "mail": "#/mail"}
    product = shop.a_product(both, stock=1)
    lines = [{"productId": product["id"], "pieces": 0}, {"productId": product["id"]}]
    assert said("POST", "/v2/orders", {"userId": user["id"], "lines": lines}) == {
        "lines[0].pieces": "#/lines/0/pieces",
        "lines[1].pieces": "#/lines/1/pieces",
    }
    lines = [{"productId": product["id"], "pieces": 2}]
    assert said("POST", "/v2/orders", {"userId": user["id"], "lines": lines}) == {
        "lines[0].pieces": "#/lines/0/pieces"
    }
    assert said("POST", "/v2/orders", {"userId": user["id"], "lines": [{"productId": "x", "pieces": 1}]}) == {
        "lines[0].productId": "#/lines/0/productId"
    }
    assert said("POST", "/v2/orders", {"userId": user["id"], "lines": []}) == {"lines": "#/lines"}


def test_lists_of_the_second_version_use_its_names(both: Service) -> None:
    """Sort, filters, ranges, fields and cursors go by the new names."""
    name = shop.unique()
    made = [shop.a_product(both, name=name, price=price) for price in (3, 1, 2, 1)]
    by_price = [each["id"] for each in sorted(made, key=lambda each: (each["price"], each["id"]))]
    shown = shop.walked(both, f"/v2/products?title={name}&sort=cost&limit=1")
    assert [each["id"] for each in shown] == by_price
    assert all("title" in each and "cost" in each for each in shown)
    above = shop.walked(both, f"/v2/products?title={name}&cost[gt]=1&sort=-cost&limit=1")
    assert [each["cost"] for each in above] == [3, 2]
    (one,) = shop.walked(both, f"/v2/products?sku={made[0]['sku']}&fields=title,cost&sort=-title")
    assert one == {"id": made[0]["id"], "title": name, "cost": 3}
    assert set(shop.get(both, f"/v2/products/{made[0]['id']}?fields=cost")) == {"id", "cost"}
    assert [
        each["id"] for each in shop.walked(both, f"/v1/products?name={name}&sort=price&limit=1")
    ] == by_price


def test_what_is_embedded_uses_the_new_names_too(both: Service) -> None:
    """An order of /v2 shows its lines and its address as /v2 shows them at their own addresses, and takes them so."""
    user = shop.a_user(both)
    address = shop.an_address(both, user)
    product = shop.a_product(both)
    body = {
        "userId": user["id"],
        "shippingAddressId": address["id"],
        "lines": [{"productId": product["id"], "pieces": 2}],
    }
    order = both.made("/v2/orders", body)
    (line,) = order["lines"]
    assert line["pieces"] == 2
    assert line == shop.get(both, f"/v2/line-items/{line['id']}")
    assert line == shop.walked(both, f"/v2/orders/{order['id']}/line-items")[0]
    assert order["sum"] == 5
    assert order["shippingAddress"] == shop.get(both, f"/v2/users/{user['id']}/addresses/{address['id']}")
    assert not {"lineItems", "total"} & set(order)
    (listed,) = shop.walked(both, f"/v2/orders?userId={user['id']}&sort=-sum")
    assert listed == order
    old = shop.get(both, f"/v1/orders/{order['id']}")
    assert old["lineItems"][0]["quantity"] == 2
    assert old["shippingAddress"]["postalCode"] == address["postalCode"]
    assert "zip" not in old["shippingAddress"]
    path = f"/v2/orders/{order['id']}"
    more = both.call("PATCH", path, {"lines": [{**line, "pieces": 3}]})
    assert (more.status, more.json["lines"][0]["pieces"]) == (200, 3)
    assert both.call("PUT", path, more.json).headers["etag"] == more.headers["etag"]
    fewer = both.call("PATCH", f"/v2/line-items/{line['id']}", {"pieces": 1})
    assert (fewer.status, fewer.json["pieces"]) == (200, 1)
    assert shop.stock_of(both, product) == 99
    assert set(shop.get(both, f"{path}?fields=lines")) == {"id", "lines"}


def test_the_versions_share_their_items_and_events(both: Service) -> None:
    """A write through either version is one write: one item, one event, whatever it was called."""
    body = {"sku": shop.unique(), "title": "Lantern", "cost": 1, "currency": "GBP"}
    made = both.made("/v2/products", body)
    both.call("PATCH", f"/v1/products/{made['id']}", {"name": "Lamp"})
    assert shop.told(both, f"products/{made['id']}") == ["product.created", "product.updated"]
    assert both.post("/v1/products", shop.product_body(sku=body["sku"])).status == 409


ACCEPTS = {
    "application/vnd.tradepost.v2+json, application/json": 200,
    "application/json;q=0, */*": 406,
    "application/json;q=0, application/vnd.tradepost.v1+json": 200,
    "application/vnd.tradepost.v2+json": 406,
}


@pytest.mark.parametrize("field", ACCEPTS)
def test_accept_is_read_whole(service: Service, field: str) -> None:
    """A type of a version that is not here is passed over for one that is; a type refused is not sent."""
    assert service.get("/v1/users", accept=field).status == ACCEPTS[field]


def test_a_body_of_another_version_is_415(service: Service) -> None:
    """A body that says it is of a version that is not this one is not read."""
    reply = service.post("/v1/users", {}, content_type="application/vnd.tradepost.v9+json")
    assert reply.status == 415
    reply = service.post("/v1/users", {}, content_type="application/vnd.tradepost.v1+json")
    assert reply.status == 422


def test_an_unknown_path_is_404_whatever_is_accepted(service: Service) -> None:
    """What is not there is not there in any media type."""
    assert service.get("/nothing", accept="text/html").status == 404
