"""Bad input of any kind gets a clear problem, never a failure of ours, and leaves nothing behind."""

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import shop
from tests.rest import hooks
from tests.service import Reply, Service
from tradepost import catalogue
from tradepost.domain.record import Mark, Member, members


class Target(NamedTuple):
    """A method at an address that takes a body, with a body it would accept."""

    method: str
    path: str
    good: dict[str, Any]


class _World:
    """What addresses and bodies name, each made when it is first needed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @cached_property
    def user(self) -> Any:
        return shop.a_user(self._service)

    @cached_property
    def address(self) -> str:
        return f"{self.addresses}/{shop.an_address(self._service, self.user)['id']}"

    @cached_property
    def product(self) -> Any:
        return shop.a_product(self._service, stock=None)

    @cached_property
    def order(self) -> Any:
        return shop.an_order(self._service, (self.product, 1), user=self.user)

    @cached_property
    def endpoint(self) -> Any:
        return self._service.made("/v1/webhook-endpoints", _HOOK)

    @cached_property
    def event(self) -> Any:
        return shop.events_of(self._service, f"users/{self.user['id']}")[0]

    @property
    def addresses(self) -> str:
        return f"/v1/users/{self.user['id']}/addresses"

    @property
    def lines(self) -> str:
        return f"/v1/orders/{self.order['id']}/line-items"

    @property
    def line_id(self) -> str:
        return str(self.order["lineItems"][0]["id"])

    @property
    def line(self) -> dict[str, Any]:
        return {"productId": self.product["id"], "quantity": 1}


_HOOK = {"url": hooks.URL, "eventTypes": ["webhook.ping"], "description": "Ours"}
_STRETCH = {"from": "2020-01-01", "to": "2020-01-02T00:00:00Z", "eventTypes": ["*"], "status": "ABANDONED"}
_API_KEY = {"name": "n", "scopes": ["users:read"], "userId": None, "expiresAt": None}

_Place = Callable[[_World], tuple[str, dict[str, Any]]]
_NEW: dict[str, _Place] = {
    "user": lambda w: ("/v1/users", shop.user_body()),
    "address": lambda w: (w.addresses, shop.address_body()),
    "product": lambda w: ("/v1/products", shop.product_body()),
    "order": lambda w: ("/v1/orders", shop.order_body(w.user, (w.product, 1))),
    "line item": lambda w: ("/v1/line-items", {**w.line, "orderId": w.order["id"]}),
    "line item below": lambda w: (w.lines, w.line),
    "API key": lambda w: ("/v1/api-keys", _API_KEY),
    "webhook endpoint": lambda w: ("/v1/webhook-endpoints", _HOOK),
    "webhook delivery": lambda w: (
        "/v1/webhook-deliveries",
        {"endpointId": w.endpoint["id"], "eventId": w.event["id"]},
    ),
    "webhook redelivery": lambda w: (
        "/v1/webhook-redeliveries",
        {"endpointId": w.endpoint["id"], **_STRETCH},
    ),
}
_THERE: dict[str, _Place] = {
    "user": lambda w: (f"/v1/users/{w.user['id']}", shop.user_body(email=w.user["email"])),
    "address": lambda w: (w.address, shop.address_body()),
    "product": lambda w: (
        f"/v1/products/{w.product['id']}",
        shop.product_body(sku=w.product["sku"], stock=None),
    ),
    "order": lambda w: (
        f"/v1/orders/{w.order['id']}",
        {**shop.order_body(w.user), "lineItems": w.order["lineItems"]},
    ),
    "line item": lambda w: (f"/v1/line-items/{w.line_id}", {**w.line, "orderId": w.order["id"]}),
    "line item below": lambda w: (f"{w.lines}/{w.line_id}", w.line),
    "webhook endpoint": lambda w: (f"/v1/webhook-endpoints/{w.endpoint['id']}", _HOOK),
}
NAMES = [
    *[f"POST {name}" for name in _NEW],
    *[f"{method} {name}" for method in ("PUT", "PATCH") for name in _THERE],
]


def _target(service: Service, name: str) -> Target:
    """A write at an address made for this one use, so that no test leaves its traces to another."""
    method, _, what = name.partition(" ")
    place = (_NEW if method == "POST" else _THERE)[what]
    return Target(method, *place(_World(service)))


def _judge(reply: Reply) -> Reply:
    """An answer is a success or a problem of the caller's."""
    assert reply.status in {200, 201, 204, 400, 409, 413, 415, 422}, reply
    if reply.status >= 400:
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json["status"] == reply.status
        assert (reply.status == 422) == (reply.json["errors"] != []) or reply.status == 409
    return reply


def test_every_write_of_the_catalogue_is_here() -> None:
    """No resource that takes bodies is left out of these tests."""
    records = {each.record.kind for each in catalogue.RESOURCES if "POST" in each.methods}
    named = {name.partition(" ")[2].replace(" below", "").replace(" ", "_").lower() for name in NAMES}
    assert named <= records


@pytest.mark.parametrize("name", NAMES)
def test_a_good_body_is_taken(service: Service, name: str) -> None:
    """What the other tests spoil is right as it stands."""
    method, path, good = _target(service, name)
    fresh = {"email": f"{shop.unique()}@shop.example", "sku": shop.unique()} if method == "POST" else {}
    body = good | {member: value for member, value in fresh.items() if member in good}
    assert service.call(method, path, body).status == (201 if method == "POST" else 200)


BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "a space": b" ",
    "half an object": b'{"name": "Ada"',
    "a trailing comma": b'{"name": "Ada",}',
    "two objects": b"{}{}",
    "single quotes": b"{'name': 'Ada'}",
    "no quotes": b"{name: 1}",
    "a comment": b"{} // done",
    "NaN": b'{"name": NaN, "price": NaN, "quantity": NaN}',
    "Infinity": b'{"price": Infinity}',
    "minus Infinity": b'{"price": -Infinity}',
    "1e400": b'{"price": 1e400, "quantity": 1e400}',
    "a leading zero": b'{"price": 01}',
    "a plus": b'{"price": +1}',
    "hexadecimal": b'{"price": 0x10}',
    "a raw NUL": b'{"name": "a\x00b"}',
    "a raw newline": b'{"name": "a\nb"}',
    "a NUL behind": b"{}\x00",
    "a lone high surrogate": b'{"name": "\\ud800"}',
    "a lone low surrogate": b'{"name": "\\udc00"}',
    "surrogates the wrong way": b'{"name": "\\udc00\\ud800"}',
    "a bad escape": b'{"name": "\\x41"}',
    "half an escape": b'{"name": "\\u00"}',
    "invalid UTF-8": b'{"name": "\xff\xfe"}',
    "an overlong form": b'{"name": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "UTF-16": '{"name": "Ada"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"name": "Ada"}',
    "Latin-1": '{"name": "é"}'.encode("latin-1"),
    "10 000 arrays": b"[" * 10_000,
    "10 000 objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "10 000 closed arrays": b'{"name": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "arrays in an ignored member": b'{"id": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "a number of 4000 digits and a letter": b'{"price": ' + b"9" * 4000 + b"x}",
    "null": b"null",
    "true": b"true",
    "a number": b"5",
    "a text": b'"Ada"',
    "an array": b"[]",
    "an array of an object": b"[{}]",
    "form data": b"name=Ada&email=a%40b.example",
    "XML": b"<user/>",
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_json_object_is_400(service: Service, name: str) -> None:
    """Broken JSON in any way, and JSON that is no object, is 400 at every address that takes a body."""
    method, path, _ = _target(service, name)
    found = {kind: service.call(method, path, body).status for kind, body in BROKEN.items()}
    assert {kind: status for kind, status in found.items() if status != 400} == {}


@pytest.mark.parametrize("name", ["POST user", "PUT user", "PATCH user", "PATCH order", "PUT order"])
def test_no_depth_of_nesting_is_a_failure(service: Service, name: str) -> None:
    """At whatever depth a body is refused, it is refused as the caller's: there is no depth between that fails."""
    method, path, good = _target(service, name)
    member = "lineItems" if "order" in name else "name"
    for depth in [*range(1, 140, 3), *range(140, 1300, 5), 1 << 14, 1 << 17]:
        for opened, closed in ((b'{"a":', b"}"), (b"[", b"]")):
            body = json.dumps({**good, member: "HERE"}).encode()
            reply = service.call(
                method, path, body.replace(b'"HERE"', opened * depth + b"1" + closed * depth)
            )
            assert reply.status in (400, 413, 422), (depth, opened, reply)


@pytest.mark.parametrize("name", NAMES)
def test_a_body_over_a_mebibyte_is_413(service: Service, name: str) -> None:
    """1 MiB is read, one byte more is 413, whether or not its length was announced truly."""
    method, path, good = _target(service, name)
    body = json.dumps(good).encode()
    most = body + b" " * ((1 << 20) - len(body))
    assert service.call(method, path, most + b" ").status == 413
    assert service.call(method, path, most + b" ", content_length="5").status == 413
    assert service.call(method, path, b"{}", content_length=str((1 << 20) + 1)).status == 413
    assert _judge(service.call(method, path, most)).status != 413


@pytest.mark.parametrize(
    ("member", "length"),
    [("name", 201), ("name", 100_000), ("name", 1_000_000), ("email", 255), ("email", 900_000)],
)
def test_a_text_beyond_its_bound_is_422(service: Service, member: str, length: int) -> None:
    """A text longer than its member takes is 422, however long."""
    text = "a" * length if member == "name" else "a" * (length - 10) + "@x.example"
    reply = service.post("/v1/users", shop.user_body(**{member: text}))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {member})
    assert len(reply.body) < 2000


@pytest.mark.parametrize("length", [1, 200])
def test_texts_count_by_characters(service: Service, length: int) -> None:
    """A name holds up to 200 characters, whatever they weigh in bytes."""
    for letter in ("a", "é", "日", "😀"):
        assert shop.a_user(service, name=letter * length)["name"] == letter * length
    assert service.post("/v1/users", shop.user_body(name="😀" * 201)).status == 422


@pytest.mark.parametrize(
    "text",
    [
        "O'Brien",
        'a"b\\c',
        "a\tb\nc",
        "\u202eabc",
        "\ufeff",
        "a\u0301",
        "\u2028",
        "\x7f",
        "<script>",
        "%s{}{{",
        "\U0001d538\U0010ffff",
    ],
)
def test_texts_come_back_as_they_were_sent(service: Service, text: str) -> None:
    """What is text stays the text it was: quotes, controls, marks and all planes."""
    user = shop.a_user(service, name=text)
    assert shop.get(service, f"/v1/users/{user['id']}")["name"] == text
    assert shop.walked(service, f"/v1/users?email={user['email']}")[0]["name"] == text


@pytest.mark.parametrize("name", NAMES)
def test_a_nul_is_422_and_named(service: Service, name: str) -> None:
    """A NUL in a text, which not every engine can keep, is 422 naming the member; in a name it is an unknown member."""
    method, path, good = _target(service, name)
    for member in [member for member, value in good.items() if isinstance(value, str)]:
        reply = service.call(method, path, {**good, member: "a\0b"})
        assert reply.status == 422, (member, reply)
        assert member in shop.fields_of(reply.json)
    reply = service.call(method, path, {**good, "a\0b": 1})
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"a\0b"})


def test_a_nul_in_a_line_is_422(service: Service) -> None:
    """The same inside the lines of an order, in what is read and in what is ignored."""
    for name in ("POST order", "PUT order", "PATCH order"):
        method, path, good = _target(service, name)
        line = {"productId": good["lineItems"][0]["productId"], "quantity": 1}
        reply = service.call(method, path, {**good, "lineItems": [{**line, "productId": "a\0"}]})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"lineItems[0].productId"})
        assert (
            service.call(method, path, {**good, "lineItems": [{**line, "id": "a\0", "sku": "\0"}]}).status
            < 500
        )


def test_the_last_of_double_members_or_none_counts(service: Service) -> None:
    """A member given twice is refused, or the last one counts, as JSON parsers agree (RFC 8259, 4)."""
    email = f"{shop.unique()}@shop.example"
    reply = service.post("/v1/users", b'{"name": "A", "name": "B", "email": "%s"}' % email.encode())
    assert reply.status in (400, 422) or reply.json["name"] == "B"


# --- wrong types for each member, from the catalogue ---

_SAMPLES: dict[str, list[Any]] = {
    "text": ["x"],
    "number": [1.5],
    "integer": [3, 2**63, 2**64, -(2**63) - 1, 10**400],
    "boolean": [True, False],
    "array": [[], [1]],
    "object": [{}, {"a": 1}],
    "null": [None],
}


def _kinds(member: Member) -> set[str]:
    """Which JSON types a member takes."""
    taken = (
        {"integer", "number"}
        if Mark.MONEY in member.marks
        else {"integer"}
        if member.is_integer
        else {"text"}
    )
    if member.json_name in ("scopes", "eventTypes"):
        taken = {"array"}
    return taken | ({"null"} if member.nullable else set())


def _wrong(member: Member) -> Iterator[Any]:
    taken = _kinds(member)
    for kind, samples in _SAMPLES.items():
        if kind not in taken and not (kind == "null" and not member.required):
            yield from samples
    if "integer" in taken:
        yield from (-1, 2**63, -(2**70), 10**400)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_type_is_422_naming_the_member(service: Service, name: str) -> None:
    """Each writable member of each resource refuses every JSON type that is not its own, by its name."""
    method, path, good = _target(service, name)
    kind = name.partition(" ")[2].replace(" below", "").replace(" ", "_").lower()
    record = next(each.record for each in catalogue.RESOURCES if each.record.kind == kind)
    tried = 0
    for member in members(record):
        ignored = member.read_only or ("below" in name and member.json_name == "orderId")
        if ignored or member.json_name not in (*good, "status", "description", "line2", "region"):
            continue
        for value in _wrong(member):
            reply = service.call(method, path, {**good, member.json_name: value})
            assert reply.status == 422, (member.json_name, value, reply)
            found = {field.partition("[")[0] for field in shop.fields_of(reply.json)}
            assert found == {member.json_name}, (value, reply)
            tried += 1
    assert tried > 10


@pytest.mark.parametrize("name", ["POST order", "PUT order", "PATCH order"])
def test_a_wrong_type_in_a_line_is_422_naming_the_place(service: Service, name: str) -> None:
    """The same inside lineItems, and for lineItems itself."""
    method, path, good = _target(service, name)
    line = {"productId": good["lineItems"][0]["productId"], "quantity": 1}
    wrong: dict[str, list[Any]] = {
        "quantity": [None, "1", 1.5, True, [], {}, 0, -1, 10_001, 2**64, 10**400],
        "productId": [None, 1, True, [], {}],
    }
    for member, values in wrong.items():
        for value in values:
            reply = service.call(method, path, {**good, "lineItems": [line, {**line, member: value}]})
            assert (reply.status, shop.fields_of(reply.json)) == (422, {f"lineItems[1].{member}"}), value
    for value in (None, "x", 1, True, {}, {"0": line}, [], [line] * 101):
        reply = service.call(method, path, {**good, "lineItems": value})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"lineItems"}), value
    for value in (None, "x", 1, True, []):
        reply = service.call(method, path, {**good, "lineItems": [line, value]})
        assert (reply.status, shop.fields_of(reply.json)) == (422, {"lineItems[1]"}), value


@pytest.mark.parametrize(
    "email",
    [
        "",
        "a",
        "a@",
        "@b.example",
        "a@b",
        "a b@c.example",
        "a@b..example",
        "a@-b.example",
        "a@b.example\n",
        "<a@b.example>",
        "a@b@c.example",
        "a" * 65 + "@b.example",
        "a@" + "b" * 64 + ".example",
    ],
)
def test_a_bad_email_is_422(service: Service, email: str) -> None:
    """What is no email address is refused, and named."""
    reply = service.post("/v1/users", shop.user_body(email=email))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"email"})


@pytest.mark.parametrize("local", ["a.b+c_d-e", "O'Brien", "用户", "A1"])
def test_a_good_email_is_taken_and_kept(service: Service, local: str) -> None:
    """What is an email address is kept as it was written."""
    email = f"{local}{shop.unique('.')[2:]}@Shop.Example"
    assert shop.a_user(service, email=email)["email"] == email


@pytest.mark.parametrize("country", ["", "G", "GBR", "gb", "XX", "UK", "ZZ", "12"])
def test_a_bad_country_is_422(service: Service, country: str) -> None:
    """A country is an ISO 3166-1 alpha-2 code."""
    reply = service.post(
        f"/v1/users/{shop.a_user(service)['id']}/addresses", shop.address_body(country=country)
    )
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"country"})


@pytest.mark.parametrize("currency", ["", "GB", "gbp", "XXY", "EURO", "£"])
def test_a_bad_currency_is_422(service: Service, currency: str) -> None:
    """A currency is an ISO 4217 code."""
    reply = service.post("/v1/products", shop.product_body(currency=currency))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"currency"})


@pytest.mark.parametrize("price", [1e-9, 1e308, 10**30, 10**400, 2**63, -0.01, -1])
def test_a_price_beyond_its_bounds_is_422(service: Service, price: float) -> None:
    """A price is not below nothing, nor beyond what can be reckoned with."""
    reply = service.post("/v1/products", shop.product_body(price=price))
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"price"})


@pytest.mark.parametrize("price", [0, -0.0, 0.0, 1e2, 1.10, 999_999_999.99])
def test_a_price_in_any_spelling_is_taken(service: Service, price: float) -> None:
    """A price is the number it is, however spelled."""
    assert shop.a_product(service, price=price)["price"] == price


# --- anything at all ---

_TEXTS = st.text(max_size=20)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)


def _member_names(good: dict[str, Any]) -> st.SearchStrategy[str]:
    return st.sampled_from(
        [*good, "id", "status", "createdAt", "total", "stock", "lineItems", "shippingAddressId"]
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(data=st.data())
def test_no_json_is_a_failure(service: Service, name: str, data: st.DataObject) -> None:
    """Any JSON value as a body, and a good body with any member set to any value, is a success or a problem."""
    method, path, good = _target(service, name)
    _judge(service.call(method, path, json.dumps(data.draw(_JSON)).encode()))
    spoiled = data.draw(st.dictionaries(_member_names(good), _JSON, min_size=1, max_size=3))
    body = {**good, **{member: value for member, value in spoiled.items() if member != "email"}}
    _judge(service.call(method, path, json.dumps(body).encode()))
    for lines in [value for value in [good.get("lineItems")] if value]:
        line = {**lines[0], **data.draw(st.dictionaries(st.sampled_from([*lines[0]]), _JSON, max_size=2))}
        _judge(service.call(method, path, json.dumps({**good, "lineItems": [line, *lines]}).encode()))


@pytest.mark.parametrize("name", ["POST user", "PUT product", "PATCH order", "POST API key"])
@given(body=st.binary(max_size=60))
def test_no_bytes_are_a_failure(service: Service, name: str, body: bytes) -> None:
    """Any bytes as a body are a success or a problem."""
    method, path, _ = _target(service, name)
    _judge(service.call(method, path, body))


_HEADERS = ["accept", "content-type", "if-match", "if-none-match", "prefer", "idempotency-key", "traceparent"]
_HEADERS += [
    "authorization",
    "api-version",
    "x-request-id",
    "host",
    "range",
    "expect",
    "cookie",
    "accept-encoding",
]


@given(
    headers=st.dictionaries(
        st.sampled_from(_HEADERS),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40),
        max_size=4,
    ),
    call=st.sampled_from(["GET", "POST", "PATCH"]),
)
def test_no_header_is_a_failure(service: Service, headers: dict[str, str], call: str) -> None:
    """Any text in any header we read is a success or a problem of the caller's."""
    path = "/users?limit=1" if call == "GET" else "/users" if call == "POST" else "/users/nobody"
    sent = {name.replace("-", "_"): value for name, value in headers.items()}
    reply = service.call(call, path, None if call == "GET" else shop.user_body(), **sent)
    assert reply.status < 500, (headers, reply)


def test_what_was_refused_left_nothing(service: Service) -> None:
    """A refused write leaves no row and no event, whichever way it was refused."""
    tables = (
        "users",
        "addresses",
        "products",
        "orders",
        "line_items",
        "api_keys",
        "events",
        "idempotency_keys",
    )

    def counted() -> list[Any]:
        return [service.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables]

    targets = [_target(service, name) for name in NAMES]
    before = counted()
    for method, path, good in targets:
        for body in (b"{", b"[]", {}, {**good, "nothing": 1}, b" " * (2 << 20)):
            if method == "PATCH" and body == {}:
                continue
            sent: Callable[[], Reply] = lambda: service.call(method, path, body, idempotency_key="k")  # noqa: B023, E731
            assert sent().status in (400, 413, 422)
    assert counted() == before


@pytest.mark.parametrize("begun", [b"", b"{"])
def test_a_body_that_stalls_is_408_and_closes(
    service: Service, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    """A body that does not arrive in time is answered with a problem, and the connection is not kept."""
    monkeypatch.setattr("tradepost.http.request._BODY_SECONDS", 0.01)
    reply = service.call_slowly("POST", "/v1/users", begun)
    assert reply.status == 408
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["connection"] == "close"


def test_an_unreachable_database_is_503(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is out of reach the service says that it is not ready, and when to come again."""
    if service.engine == "sqlite":
        pytest.skip("an embedded database is never out of reach")

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(
        service.app.rest.performer.database, "_pool", SimpleNamespace(acquire=refuse, fetchrow=refuse)
    )
    for path in ("/readyz", f"/v1/users/{'0' * 8}"):
        reply = service.get(path)
        assert reply.status == 503
        assert reply.headers["retry-after"]
