"""Lists: pages, sorting, filters and fields, each compared with the same done in Python."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product as pairs
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shop
from tests.given_clock import TickingClock
from tests.service import Reply, Service
from tradepost import catalogue
from tradepost.clock import parse_instant
from tradepost.domain.record import Mark, members
from tradepost.resource import Resource
from tradepost.rest.pages import MAX_OFFSET

LINK = re.compile(r'<([^>]*)>; rel="([a-z]+)"')


class Shelf(NamedTuple):
    """A service of its own whose lists hold what we know: each path's items in the order they were made."""

    service: Service
    lists: dict[str, list[Any]]


@pytest.fixture(scope="module")
def shelf(engine: str, new_service: Callable[..., Service]) -> Shelf:
    """Items with ties in every sortable member, instants too, in scripts and cases that sort apart."""
    service = new_service(engine, clock=TickingClock())
    names = ["Zoë", "ada", "Ada", "ähre", "Ωmega", "zz", "Z", "日本", "a_b", "a%b", "😀", "Ada"]
    users = [
        shop.a_user(service, name=name, email=f"{i % 5}.{shop.unique()}@x.example")
        for i, name in enumerate(names)
    ]
    service.call("PATCH", f"/v1/users/{users[3]['id']}", {"status": "DEACTIVATED"})
    service.call("PATCH", f"/v1/users/{users[8]['id']}", {"name": "Zoë"})
    cities = ["Leeds", "leeds", "Åbo", "Leeds"]
    for i, city in enumerate(cities * 2):
        shop.an_address(service, users[0], city=city, postalCode=f"N{i % 3}", country=["GB", "FI"][i % 2])
    shop.an_address(service, users[1])
    goods = [
        shop.a_product(
            service,
            name=name,
            sku=f"{'Bb'[i % 2]}{i}",
            price=[1, 1.5, 19.99, 0, 1.5][i % 5],
            currency=["GBP", "USD"][i % 3 == 0],
            stock=[None, 0, 5, 1000][i % 4] if i > 3 else 1000,
            status="ARCHIVED" if i == 9 else "ACTIVE",
        )
        for i, name in enumerate(names)
    ]
    pounds = [each for each in goods if each["currency"] == "GBP" and each["stock"] == 1000]
    orders = [
        shop.an_order(service, (pounds[i % len(pounds)], i % 3 + 1), (pounds[0], 1), user=users[i % 3])
        for i in range(11)
    ]
    for order in orders[:4]:
        service.call("PATCH", f"/v1/orders/{order['id']}", {"status": "FULFILLED"})
    service.call("PATCH", f"/v1/orders/{orders[5]['id']}", {"status": "CANCELLED"})
    for i in range(5):
        body = {"name": f"key {i}", "scopes": ["users:read"], "userId": users[i % 2]["id"] if i else None}
        service.made("/v1/api-keys", body)
    # What is deleted is in no list.
    for path, each in (
        ("/v1/users", shop.a_user(service)),
        ("/v1/products", shop.a_product(service)),
        ("/v1/orders", shop.an_order(service, (pounds[0], 1), user=users[0])),
    ):
        assert service.call("DELETE", f"{path}/{each['id']}").status == 204
    paths = [
        "/v1/users",
        f"/v1/users/{users[0]['id']}/addresses",
        "/v1/products",
        "/v1/orders",
        f"/v1/orders/{orders[0]['id']}/line-items",
        "/v1/line-items",
        "/v1/api-keys",
        "/v1/events",
    ]
    shop.events_of(service, "all/of/them")  # the log has settled
    return Shelf(service, {path: _whole(service, path) for path in paths})


def _whole(service: Service, path: str) -> list[Any]:
    """A whole list in one page, by default in the order of creation."""
    page = shop.get(service, f"{path}?limit=200")
    assert page["next"] is None
    found: list[Any] = page["items"]
    return found


def _resource(path: str) -> Resource:
    segment = [part for part in path.split("/") if re.fullmatch(r"[a-z-]+", part)][-1]
    return next(each for each in catalogue.RESOURCES if each.segment == segment)


PATHS = ["users", "addresses", "products", "orders", "orders/line-items", "line-items", "api-keys", "events"]


def _path(shelf: Shelf, kind: str) -> str:
    return list(shelf.lists)[PATHS.index(kind)]


def _sorts(kind: str) -> list[str]:
    marked = [each.json_name for each in members(_resource(f"/{kind}").record) if Mark.SORTABLE in each.marks]
    return ["id", *marked]


def _links(reply: Reply) -> dict[str, str]:
    return {relation: target for target, relation in LINK.findall(reply.headers["link"])}


def _ids(items: list[Any]) -> list[str]:
    return [each["id"] for each in items]


def _key(value: Any) -> Any:
    """How values compare: texts by their bytes."""
    return value.encode() if isinstance(value, str) else value


def _sorted(items: list[Any], sort: str) -> list[Any]:
    name = sort.removeprefix("-")
    if name == "id":
        return items[::-1] if sort.startswith("-") else items
    return sorted(items, key=lambda each: (_key(each[name]), each["id"]), reverse=sort.startswith("-"))


def _shown(service: Service, path: str, parameters: dict[str, Any]) -> list[Any]:
    return shop.walked(service, f"{path}?{urlencode(parameters)}")


# --- how many ---


def test_a_page_holds_fifty_unless_told(service: Service) -> None:
    """`limit` is 50 unless told."""
    order = shop.an_order(service)
    product = order["lineItems"][0]["productId"]
    lines = [{"productId": product, "quantity": 1}] * 51
    path = f"/v1/orders/{order['id']}"
    assert service.call("PATCH", path, {"lineItems": lines}).status == 200
    page = shop.get(service, f"{path}/line-items")
    assert len(page["items"]) == 50
    assert page["next"] is not None


def test_a_limit_above_200_counts_as_200(engine: str, new_service: Callable[..., Service]) -> None:
    """200, 201 and any greater number show 200 items; 199 shows 199."""
    service = new_service(engine)
    service.calls(*[("POST", "/v1/users", shop.user_body()) for _ in range(203)])
    shown = {
        limit: len(shop.get(service, f"/v1/users?limit={limit}")["items"])
        for limit in ("1", "199", "200", "201", "1000000", "9" * 18, "9" * 19, "9" * 20, "9" * 4000)
    }
    assert shown == {limit: min(200, int(limit)) if len(limit) < 20 else 200 for limit in shown}


BAD_PARAMETERS = [
    *[
        f"limit={bad}"
        for bad in ("0", "-1", "", "ten", "1.5", "1e2", "0x10", "%D9%A3", "1_0", "+1", "%201", "true")
    ],
    *[f"offset={bad}" for bad in ("-1", str(MAX_OFFSET + 1), "", "x", "1.0", "9" * 30)],
    "cursor=&offset=0",
    "colour=red",
    "Limit=5",
    "limit[gte]=5",
    "limit=5&limit=5",
    "limit=5&limit=6",
    "name=a&name=b",
    "sort=",
    "sort=-",
    "sort=--name",
    "sort=nothing",
    "sort=status",
    "sort=name,id",
    "sort=Name",
    "sort=created_at",
    "sort=email_key",
    "sort=deletedAt",
    "fields=nothing",
    "fields=name,nothing",
    "fields=deletedAt",
    "fields=version",
    "fields=name&fields=id",
    "status=LOST",
    "status[gte]=ACTIVE",
    "name[like]=a",
    "name[]=a",
    "name[gte]=a",
    "created_at=2026-01-01T00:00:00Z",
    "createdAt=yesterday",
    "createdAt=",
    "createdAt[gte]=2026-13-01T00:00:00Z",
    "createdAt[gte]=2026-02-30",
    "createdAt[eq]=2026-01-01T00:00:00Z",
    "createdAt[gte]=2026-01-01T00:00:00",
    "createdAt[gte]=2026-01-01T00:00:00%2B99:99",
    "createdAt[gte]=99999-01-01T00:00:00Z",
    "updatedAt[lt]=0",
    "version=2",
    "deletedAt=2026-01-01",
    "%00=1",
    "name=%00",
    "name=%FF",
    "%FF=1",
    "name=é",
    "cursor=%00",
]


@pytest.mark.parametrize("query", BAD_PARAMETERS)
def test_a_bad_query_is_400_and_says_which_parameter(service: Service, query: str) -> None:
    """A parameter that is unknown, doubled, out of bounds or unreadable is 400."""
    reply = service.get(f"/v1/users?{query}")
    assert reply.status == 400
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["detail"]


@pytest.mark.parametrize(
    "query",
    [
        *[
            f"price={bad}"
            for bad in ("", "cheap", "NaN", "sNaN", "Infinity", "-Infinity", "1e400", "1e9999999", "--1")
        ],
        *[f"price[gte]={bad}" for bad in ("1e9999999", "1e99999999999999999999", "0x1", "1,5")],
        *[f"stock={bad}" for bad in ("", "few", "1.5", "9" * 30, "1e3")],
        "stock[gte]=1",
        "currency[lt]=GBP",
        "status=active",
    ],
)
def test_a_bad_filter_of_a_product_is_400(service: Service, query: str) -> None:
    """A filter whose value is none of the member's type is 400, never a failure of ours."""
    assert service.get(f"/v1/products?{query}").status == 400


@pytest.mark.parametrize(
    "path", ["/v1/users/{id}", "/v1/users/{id}/addresses/{address}", "/v1/products/{product}"]
)
def test_an_item_takes_no_unknown_parameter(service: Service, path: str) -> None:
    """GET, PUT, PATCH and DELETE of an item refuse a query parameter that is unknown."""
    user = shop.a_user(service)
    filled = path.format(
        id=user["id"], address=shop.an_address(service, user)["id"], product=shop.a_product(service)["id"]
    )
    body = service.get(filled).json
    for method, sent in (("GET", None), ("PUT", body), ("PATCH", {}), ("DELETE", None)):
        assert service.call(method, f"{filled}?colour=red", sent).status == 400, method
    assert service.get(filled).status == 200


def test_a_new_item_takes_no_parameter(service: Service) -> None:
    """POST refuses an unknown query parameter and makes nothing."""
    body = shop.user_body()
    assert service.post("/v1/users?colour=red", body).status == 400
    assert service.post("/v1/users", body).status == 201


# --- pages ---


@pytest.mark.parametrize("kind", PATHS)
@settings(max_examples=12)
@given(data=st.data())
def test_a_walk_by_cursor_is_the_whole_list(shelf: Shelf, kind: str, data: st.DataObject) -> None:
    """Whatever the limit and the sort, the pages of a walk put together are the list, sorted, ties by id."""
    path = _path(shelf, kind)
    sort = data.draw(st.sampled_from([sign + name for sign in ("", "-") for name in _sorts(kind)]))
    limit = data.draw(st.integers(1, 15))
    assert _shown(shelf.service, path, {"sort": sort, "limit": limit}) == _sorted(shelf.lists[path], sort)


@pytest.mark.parametrize("kind", PATHS)
def test_every_sortable_member_sorts_both_ways(shelf: Shelf, kind: str) -> None:
    """`sort` by every sortable member is ascending, with a leading - descending; ties are broken by id."""
    path = _path(shelf, kind)
    for sort in [sign + name for sign in ("", "-") for name in _sorts(kind)]:
        page = shop.get(shelf.service, f"{path}?limit=200&sort={sort}")
        assert _ids(page["items"]) == _ids(_sorted(shelf.lists[path], sort)), sort


def test_the_catalogue_sorts_by_what_a_shop_needs() -> None:
    """Money, names and instants can be sorted by."""
    assert {"name", "price", "createdAt", "updatedAt"} <= set(_sorts("products"))
    assert {"total", "createdAt", "updatedAt"} <= set(_sorts("orders"))


@pytest.mark.parametrize("kind", PATHS)
def test_pages_by_offset_are_slices_of_the_list(shelf: Shelf, kind: str) -> None:
    """offset and limit show that slice, and the cursor given with it goes on behind it."""
    path, sort = _path(shelf, kind), f"-{_sorts(kind)[-1]}"
    whole = _sorted(shelf.lists[path], sort)
    for offset, limit in pairs((0, 1, 2, len(whole) - 1, len(whole), MAX_OFFSET), (1, 3)):
        page = shop.get(shelf.service, f"{path}?offset={offset}&limit={limit}&sort={sort}")
        assert page["items"] == whole[offset : offset + limit]
        if offset + limit >= len(whole):
            assert page["next"] is None
        else:
            more = f"{path}?limit=200&sort={sort}&cursor={page['next']}"
            assert shop.get(shelf.service, more)["items"] == whole[offset + limit :]


@pytest.mark.parametrize("kind", PATHS)
def test_the_last_page_says_so(shelf: Shelf, kind: str) -> None:
    """`next` is null, and there is no link to it, exactly where nothing follows."""
    path = _path(shelf, kind)
    count = len(shelf.lists[path])
    for limit in (count - 1, count, count + 1):
        if limit > 0:
            reply = shelf.service.get(f"{path}?limit={limit}")
            assert (reply.json["next"] is None) == (limit >= count)
            assert ("next" in _links(reply)) == (limit < count)


def test_links_are_absolute_and_keep_every_other_parameter(shelf: Shelf) -> None:
    """Link has next and first, in offset paging prev too: absolute, with all parameters but the position."""
    asked = {
        "limit": "2",
        "sort": "-updatedAt",
        "fields": "name,email",
        "createdAt[gte]": "2020-01-01T00:00:00Z",
    }
    reply = shelf.service.get(f"/v1/users?{urlencode(asked)}")
    links = _links(reply)
    assert set(links) == {"next", "first"}
    for target in links.values():
        parts = urlsplit(target)
        assert (parts.scheme, parts.netloc, parts.path) == ("http", "shop.example", "/v1/users")
    assert _query(links["first"]) == asked
    assert _query(links["next"]) == {**asked, "cursor": reply.json["next"]}
    counted = _links(shelf.service.get(f"/v1/users?offset=5&{urlencode(asked)}"))
    assert set(counted) == {"next", "first", "prev"}
    assert _query(counted["prev"]) == {**asked, "offset": "3"}
    assert _query(counted["first"]) in (asked, {**asked, "offset": "0"})
    near = _links(shelf.service.get(f"/v1/users?offset=1&{urlencode(asked)}"))
    assert _query(near["prev"])["offset"] == "0"
    assert "prev" not in _links(shelf.service.get(f"/v1/users?offset=0&{urlencode(asked)}"))


def _query(target: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(target).query).items()}


@pytest.mark.parametrize("value", ["a&b=c", "ä ö+%", '"<>', "日本"])
def test_links_carry_what_needs_escaping(service: Service, value: str) -> None:
    """A filter with any characters comes back in the links as the same filter, and the link works."""
    for _ in range(2):
        shop.a_user(service, name=value)
    reply = service.get(f"/v1/users?{urlencode({'name': value, 'limit': 1})}")
    target = _links(reply)["next"]
    assert target.isascii()
    assert _query(target)["name"] == value
    page = shop.get(service, target.removeprefix("http://shop.example"))
    assert [each["name"] for each in page["items"]] == [value]


def test_links_of_a_sub_collection_and_of_an_unprefixed_path_stay_there(service: Service) -> None:
    """A link leads to the same list that was asked for."""
    user = shop.a_user(service)
    for _ in range(2):
        shop.an_address(service, user)
    for path in (f"/v1/users/{user['id']}/addresses", f"/users/{user['id']}/addresses"):
        target = _links(service.get(f"{path}?limit=1"))["next"]
        assert urlsplit(target).path == path
        assert len(shop.get(service, target.removeprefix("http://shop.example"))["items"]) == 1


def test_links_start_with_the_configured_address(new_service: Callable[..., Service]) -> None:
    """Where the base address is set, links start with it."""
    service = new_service("sqlite", base_url="https://api.example.com/shop")
    shop.a_user(service)
    assert _links(service.get("/v1/users"))["first"] == "https://api.example.com/shop/v1/users"


# --- cursors ---


def _cursor(service: Service, path: str) -> str:
    found: str = shop.get(service, path)["next"]
    return found


def test_a_cursor_and_an_offset_are_400(shelf: Shelf) -> None:
    """A position is given in one way."""
    cursor = _cursor(shelf.service, "/v1/users?limit=1")
    assert shelf.service.get(f"/v1/users?cursor={cursor}&offset=0").status == 400


def test_a_cursor_belongs_to_its_sort_and_filters(shelf: Shelf) -> None:
    """A cursor used with another sort, direction, filter, operator, value, list or parent is 400."""
    service = shelf.service
    one, other = list(shelf.lists)[1], f"/v1/users/{shelf.lists['/v1/users'][1]['id']}/addresses"
    made_for = {
        "/v1/users?limit=1": ["sort=name", "sort=-id", "status=ACTIVE", "createdAt[gte]=2020-01-01"],
        "/v1/users?limit=1&sort=name": ["", "sort=-name", "sort=email", "sort=name&status=ACTIVE"],
        "/v1/products?limit=1&price[gte]=1": ["price[gt]=1", "price[gte]=0", "price[gte]=1&price[lte]=9", ""],
        f"{one}?limit=1": ["city=Leeds"],
    }
    for path, others in made_for.items():
        cursor = _cursor(service, path)
        assert service.get(f"{path}&cursor={cursor}").status == 200
        for query in others:
            assert service.get(f"{path.partition('?')[0]}?{query}&cursor={cursor}").status == 400, (
                path,
                query,
            )
    elsewhere = [other, "/v1/products", "/v1/orders", "/v1/api-keys"]
    assert {
        service.get(f"{path}?cursor={_cursor(service, f'{one}?limit=1')}").status for path in elsewhere
    } == {400}


def test_a_cursor_goes_on_with_another_limit_and_other_fields(shelf: Shelf) -> None:
    """What a page holds and shows is free to change on the way; only sort and filters are not."""
    cursor = _cursor(shelf.service, "/v1/users?limit=2&sort=name")
    page = shop.get(shelf.service, f"/v1/users?limit=200&sort=name&fields=name&cursor={cursor}")
    expected = _sorted(shelf.lists["/v1/users"], "name")[2:]
    assert page["items"] == [{"id": each["id"], "name": each["name"]} for each in expected]


def _forged(cursor: str) -> Iterator[str]:
    """Cursors that were never given out, some of them close to one that was."""
    whole = json.loads(base64.urlsafe_b64decode(cursor + "=="))
    yield from (
        "x",
        "null",
        "%20",
        "e30",
        "W10",
        "!!!",
        "a" * 10_000,
        cursor[:-5],
        cursor * 2,
        quote(f"é{cursor}"),
    )
    yield from (f"{cursor}!!!", f"!{cursor}", f"{cursor}%0A", f"{cursor}.")
    for changed in (
        [],
        whole[:2],
        [*whole, 1],
        {"mark": whole},
        [whole[0], 2**70, whole[2]],
        [whole[0], -(2**63) - 1, whole[2]],
        [whole[0], 1.5, whole[2]],
        [whole[0], True, whole[2]],
        [whole[0], None, whole[2]],
        [whole[0], [1], whole[2]],
        [whole[0], whole[1], 7],
        [whole[0], whole[1], "\0"],
        [whole[0], "\0", whole[2]],
        [whole[0], "9", whole[2]],
        ["0" * 8, whole[1], whole[2]],
        [whole[0], whole[1], "\ud800"],
    ):
        yield base64.urlsafe_b64encode(json.dumps(changed).encode()).rstrip(b"=").decode()


def test_a_cursor_that_was_not_given_out_is_400(shelf: Shelf) -> None:
    """Garbage, cut, lengthened and forged cursors are 400."""
    cursor = _cursor(shelf.service, "/v1/products?sort=price&limit=1")
    found = {
        each: shelf.service.get(f"/v1/products?sort=price&cursor={each}").status for each in _forged(cursor)
    }
    assert {each: status for each, status in found.items() if status != 400} == {}


@given(junk=st.text(max_size=80))
def test_no_text_as_a_cursor_is_a_failure(service: Service, junk: str) -> None:
    """Whatever stands in `cursor`, the answer is 400."""
    assert service.get(f"/v1/users?cursor={quote(junk, errors='replace')}").status == 400


def test_a_cursor_of_an_item_that_was_deleted_goes_on(service: Service) -> None:
    """A page goes on behind the place where an item stood, whether or not it is still there."""
    name = shop.unique()
    made = [shop.a_user(service, name=name) for _ in range(4)]
    cursor = _cursor(service, f"/v1/users?name={name}&limit=2")
    service.call("DELETE", f"/v1/users/{made[1]['id']}")
    page = shop.get(service, f"/v1/users?name={name}&cursor={cursor}")
    assert _ids(page["items"]) == _ids(made[2:])


@settings(max_examples=10)
@given(data=st.data())
def test_a_walk_among_inserts_and_deletes_shows_what_stayed_once(
    service: Service, data: st.DataObject
) -> None:
    """A cursor walk while items come and go shows every item that was there throughout exactly once."""
    currency_name = shop.unique()
    sort = data.draw(st.sampled_from(["id", "-id", "price", "-price", "name", "-name", "createdAt", "-sku"]))
    path = f"/v1/products?limit={data.draw(st.integers(1, 4))}&sort={sort}&name={currency_name}"
    price = st.sampled_from([0, 1, 1.5, 2, 3])

    def made() -> Any:
        return shop.a_product(service, name=currency_name, price=data.draw(price))

    present = {each["id"] for each in (made() for _ in range(data.draw(st.integers(3, 9))))}
    throughout = set(present)
    shown: list[str] = []
    page = shop.get(service, path)
    for _ in range(shop.MANY):
        shown += _ids(page["items"])
        if page["next"] is None:
            break
        for _ in range(data.draw(st.integers(0, 2))):
            present.add(made()["id"])
        for gone in data.draw(st.lists(st.sampled_from(sorted(present)), max_size=2, unique=True)):
            assert service.call("DELETE", f"/v1/products/{gone}").status == 204
            present.discard(gone)
            throughout.discard(gone)
        page = shop.get(service, f"{path}&cursor={page['next']}")
    assert len(shown) == len(set(shown))
    assert throughout <= set(shown)


def test_a_walk_among_concurrent_writers_shows_what_stayed_once(service: Service) -> None:
    """The same holds for writers that run while pages are being read."""
    name = shop.unique()
    stayed = [shop.a_product(service, name=name, price=i % 5)["id"] for i in range(30)]
    done: list[int] = []

    def write() -> None:
        for i in range(60):
            new = shop.a_product(service, name=name, price=i % 5)
            if i % 2:
                assert service.call("DELETE", f"/v1/products/{new['id']}").status == 204
        done.append(1)

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        while True:
            walked = _ids(shop.walked(service, f"/v1/products?name={name}&sort=-price&limit=3"))
            assert len(walked) == len(set(walked))
            assert set(stayed) <= set(walked)
            if done or writing.done():
                break
        writing.result()


# --- filters ---


def _filterable(kind: str) -> list[tuple[str, bool]]:
    return [
        (each.json_name, Mark.RANGED in each.marks)
        for each in members(_resource(f"/{kind}").record)
        if Mark.FILTERABLE in each.marks
    ]


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {"": eq, "[gte]": ge, "[gt]": gt, "[lte]": le, "[lt]": lt}


@pytest.mark.parametrize("kind", PATHS)
def test_every_filter_shows_what_python_would(shelf: Shelf, kind: str) -> None:
    """Every filter and range of every resource shows exactly the items that compare so, for every value there is."""
    path = _path(shelf, kind)
    whole = shelf.lists[path]
    tried = 0
    for name, ranged in _filterable(kind):
        for value in sorted({each[name] for each in whole if each[name] is not None}, key=_key):
            for operator in OPERATORS if ranged else [""]:
                shown = _shown(shelf.service, path, {name + operator: value, "limit": 200})
                compare = OPERATORS[operator]
                expected = [
                    each
                    for each in whole
                    if each[name] is not None and compare(_key(each[name]), _key(value))
                ]
                assert shown == expected, (name, operator, value)
                tried += 1
    assert tried > 0


def test_the_law_names_the_ranges() -> None:
    """createdAt, updatedAt, price and total take ranges wherever they are, but for a line's own total."""
    for resource in catalogue.RESOURCES:
        ranged = {each.json_name for each in members(resource.record) if Mark.RANGED in each.marks}
        assert {"createdAt", "updatedAt"} & {each.json_name for each in members(resource.record)} <= ranged
    assert ("price", True) in _filterable("products")
    assert ("total", True) in _filterable("orders")


@settings(max_examples=30)
@given(data=st.data())
def test_filters_and_sorts_combine(shelf: Shelf, data: st.DataObject) -> None:
    """Any filters together show what satisfies them all, in the order asked for, page by page."""
    kind = data.draw(st.sampled_from(["users", "products", "orders"]))
    path = _path(shelf, kind)
    whole, chosen = shelf.lists[path], {}
    expected = whole
    for name, ranged in data.draw(st.lists(st.sampled_from(_filterable(kind)), max_size=3, unique=True)):
        value = data.draw(st.sampled_from([each[name] for each in whole]))
        operator = data.draw(st.sampled_from(list(OPERATORS) if ranged else [""]))
        if value is None:
            continue
        chosen[name + operator] = value
        compare = OPERATORS[operator]
        expected = [
            each for each in expected if each[name] is not None and compare(_key(each[name]), _key(value))
        ]
    sort = data.draw(st.sampled_from([sign + name for sign in ("", "-") for name in _sorts(kind)]))
    limit = data.draw(st.integers(1, 7))
    assert _shown(shelf.service, path, {**chosen, "sort": sort, "limit": limit}) == _sorted(expected, sort)


@pytest.mark.parametrize("member", ["createdAt", "updatedAt"])
def test_an_instant_can_be_spelled_in_every_way_of_rfc_3339(shelf: Shelf, member: str) -> None:
    """Offsets, lower case, more digits and bare dates name the same instants."""
    users = shelf.lists["/v1/users"]
    at = users[4][member]
    expected = [each for each in users if each[member] >= at]
    whole_seconds = [each for each in users if parse_instant(each[member]) >= parse_instant(at[:19] + "Z")]
    for spelled, found in {
        at.lower(): expected,
        at.replace("Z", "+00:00"): expected,
        at.replace("Z", "-00:00"): expected,
        at[:19] + "Z": whole_seconds,
        at.replace("Z", "000Z"): expected,
        "2000-01-01": users,
        "9000-01-01": [],
    }.items():
        assert _shown(shelf.service, "/v1/users", {f"{member}[gte]": spelled, "limit": 200}) == found, spelled


def test_an_email_is_found_whatever_its_case(service: Service) -> None:
    """A filter by email compares as its uniqueness does."""
    user = shop.a_user(service)
    assert shop.get(service, f"/v1/users?email={user['email'].upper()}")["items"] == [user]


def test_a_filter_compares_texts_and_not_patterns(service: Service) -> None:
    """Percent and underscore in a filter stand for themselves."""
    name = shop.unique()
    literal = [shop.a_user(service, name=f"{name}%"), shop.a_user(service, name=f"{name}_")]
    shop.a_user(service, name=f"{name}x")
    for each in literal:
        assert shop.get(service, f"/v1/users?{urlencode({'name': each['name']})}")["items"] == [each]


def test_a_filter_that_nothing_meets_is_an_empty_list(service: Service) -> None:
    """An empty list is a list: 200, no items, no next."""
    assert shop.get(service, f"/v1/users?name={shop.unique()}") == {"items": [], "next": None}


def test_what_is_deleted_is_in_no_list(service: Service) -> None:
    """A deleted item is shown by no list, whichever way it is sorted or filtered."""
    user, product = shop.a_user(service, name=shop.unique()), shop.a_product(service, name=shop.unique())
    address = shop.an_address(service, user)
    order = shop.an_order(service, (product, 1), (product, 2), user=user)
    line = order["lineItems"][1]
    lists = [
        (f"/v1/users/{user['id']}/addresses", address, ["", "?sort=-updatedAt", "?city=Leeds"]),
        (f"/v1/orders/{order['id']}/line-items", line, ["", "?sort=-createdAt"]),
        ("/v1/line-items", line, [f"?orderId={order['id']}", f"?productId={product['id']}"]),
        ("/v1/orders", order, [f"?userId={user['id']}", f"?userId={user['id']}&sort=total"]),
        ("/v1/products", product, [f"?name={product['name']}", f"?sku={product['sku']}&sort=-price"]),
        ("/v1/users", user, [f"?name={user['name']}", f"?email={user['email']}&sort=name"]),
    ]
    for path, item, queries in lists:
        for query in queries:
            assert item["id"] in _ids(shop.walked(service, path + query))
    for path, item, queries in lists:
        if service.get(f"{path}/{item['id']}").status == 200:
            assert service.call("DELETE", f"{path}/{item['id']}").status == 204
        for query in queries:
            if service.get(path).status == 200:
                assert item["id"] not in _ids(shop.walked(service, path + query))


# --- fields ---


@pytest.mark.parametrize("kind", PATHS)
def test_fields_shows_the_members_named_and_the_id(shelf: Shelf, kind: str) -> None:
    """`fields` limits items to the members named, in lists and alone; the id is always there."""
    path = _path(shelf, kind)
    items = shelf.lists[path]
    for name in items[0]:
        shown = shop.get(shelf.service, f"{path}?limit=200&fields={name}")["items"]
        assert shown == [
            {member: each[member] for member in ("id", name) if member in each} for each in items
        ]
        one = shop.get(shelf.service, f"{path}/{items[0]['id']}?fields={name}")
        assert one == {member: items[0][member] for member in ("id", name)}


def test_several_fields_can_be_named(shelf: Shelf) -> None:
    """Names are separated by commas, in any order, and naming one twice does no harm."""
    order = shelf.lists["/v1/orders"][0]
    shown = shop.get(shelf.service, f"/v1/orders/{order['id']}?fields=total,lineItems,id,total,%20status")
    assert shown == {name: order[name] for name in ("id", "total", "lineItems", "status")}


@pytest.mark.parametrize("kind", PATHS)
def test_an_unknown_field_is_400(shelf: Shelf, kind: str) -> None:
    """A field that the resource has not is 400, in the list and at the item."""
    path = _path(shelf, kind)
    for bad in ("colour", "id,colour", "lineItems.id", "created_at", "deletedAt", "hash", "*"):
        assert shelf.service.get(f"{path}?fields={bad}").status == 400, bad
        assert shelf.service.get(f"{path}/{shelf.lists[path][0]['id']}?fields={bad}").status == 400, bad


# --- the law's own sentences about what a list is ---


@pytest.mark.parametrize("kind", PATHS)
def test_a_list_is_items_and_next(shelf: Shelf, kind: str) -> None:
    """A list is {"items": […], "next": …} and nothing else, its items as they are at their own address."""
    path = _path(shelf, kind)
    page = shop.get(shelf.service, f"{path}?limit=3")
    assert set(page) == {"items", "next"}
    for each in page["items"]:
        assert shop.get(shelf.service, f"{path}/{each['id']}") == each


@pytest.mark.parametrize("kind", PATHS)
def test_ids_ascend_by_creation(shelf: Shelf, kind: str) -> None:
    """Ids ascend in the order in which the items were created."""
    items = shelf.lists[_path(shelf, kind)]
    assert _ids(items) == sorted(_ids(items))
    instants = [each.get("createdAt", each.get("time")) for each in items]
    assert instants == sorted(instants)


def test_an_empty_sub_collection_is_there_while_its_parent_is(service: Service) -> None:
    """A sub-collection of nothing is an empty list; of a deleted or unknown parent it is 404."""
    user = shop.a_user(service)
    path = f"/v1/users/{user['id']}/addresses"
    assert shop.get(service, path) == {"items": [], "next": None}
    service.call("DELETE", f"/v1/users/{user['id']}")
    assert service.get(path).status == 404


def test_items_of_a_sub_collection_are_the_parents_alone(service: Service) -> None:
    """Below a parent only its own children are listed, found, changed or removed."""
    one, other = shop.a_user(service), shop.a_user(service)
    address = shop.an_address(service, one)
    wrong = f"/v1/users/{other['id']}/addresses/{address['id']}"
    for method, body in (
        ("GET", None),
        ("PUT", shop.address_body()),
        ("PATCH", {"city": "Y"}),
        ("DELETE", None),
    ):
        assert service.call(method, wrong, body).status == 404
    order, another = shop.an_order(service), shop.an_order(service)
    line = order["lineItems"][0]
    wrong = f"/v1/orders/{another['id']}/line-items/{line['id']}"
    for method, body in (("GET", None), ("PATCH", {"quantity": 2}), ("DELETE", None)):
        assert service.call(method, wrong, body).status == 404
    assert _ids(shop.walked(service, f"/v1/orders/{another['id']}/line-items")) == _ids(another["lineItems"])
