"""PATCH: a JSON Merge Patch (RFC 7396), judged like a full replacement."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import shop
from tests.service import Service

Patch = dict[str, Any]
Judge = Callable[[Any, dict[str, Any]], bool]


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2, as it stands there."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def _text(lowest: int, highest: int) -> Judge:
    return lambda value, _: isinstance(value, str) and lowest <= len(value) <= highest


def _one_of(*values: str) -> Judge:
    return lambda value, _: value in values and isinstance(value, str)


def _price(value: Any, whole: dict[str, Any]) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return False
    decimals = {"GBP": 2, "JPY": 0, "KWD": 3}.get(str(whole.get("currency")))
    return decimals is None or Decimal(repr(value)) == round(Decimal(repr(value)), decimals)


def _stock(value: Any, _: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31)


USER: dict[str, Judge] = {
    "name": _text(1, 200),
    "email": lambda value, _: isinstance(value, str) and value.endswith("@shop.example"),
    "status": _one_of("ACTIVE", "DEACTIVATED"),
}
PRODUCT: dict[str, Judge] = {
    "sku": _text(1, 64),
    "name": _text(1, 200),
    "description": lambda value, _: value is None or isinstance(value, str),
    "price": _price,
    "currency": _one_of("GBP", "JPY", "KWD"),
    "stock": _stock,
    "status": _one_of("ACTIVE", "ARCHIVED"),
}
DEFAULTS: dict[str, Any] = {"description": None, "stock": None, "status": "ACTIVE"}

WRONG = st.sampled_from([None, "", 0, -1, 1.5, True, [], ["a"], {}, {"a": None}, {"a": {"b": 1}}, "x" * 201])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.text("aé日😀 %_'\"\\", min_size=1, max_size=200),
    "email": st.builds(lambda: f"{shop.unique()}@shop.example"),
    "sku": st.builds(shop.unique),
    "description": st.text("a\n\té", max_size=50),
    "price": st.sampled_from([0, 1, 1.5, 1.25, 1.125, 999999.99]),
    "currency": st.sampled_from(["GBP", "JPY", "KWD"]),
    "stock": st.integers(0, 2**31 - 1),
    "status": st.sampled_from(["ACTIVE", "DEACTIVATED", "ARCHIVED"]),
}
READ_ONLY = {"id": WRONG, "createdAt": WRONG, "updatedAt": WRONG}


def _patches(judges: dict[str, Judge]) -> st.SearchStrategy[Patch]:
    values = {name: st.one_of(VALUES[name], VALUES[name], WRONG) for name in judges}
    return st.fixed_dictionaries({}, optional=values | READ_ONLY)


def _check(service: Service, path: str, patch: Patch, judges: dict[str, Judge]) -> None:
    before = service.get(path)
    whole = merged(before.json, patch)
    expected = {name: whole.get(name, DEFAULTS.get(name)) for name in judges}
    absent = object()
    wrong = {
        name
        for name, judge in judges.items()
        if not (
            (name not in whole and name in DEFAULTS)
            or (whole.get(name, absent) is not absent and judge(whole[name], whole))
        )
    }
    reply = service.call("PATCH", path, patch)
    if wrong:
        assert (reply.status, shop.fields_of(reply.json)) == (422, wrong), patch
        assert service.get(path).body == before.body
        return
    assert reply.status == 200, (patch, reply)
    assert {name: reply.json[name] for name in judges} == expected
    assert (reply.json["id"], reply.json["createdAt"]) == (before.json["id"], before.json["createdAt"])
    assert (reply.headers["etag"] == before.headers["etag"]) == (reply.json == before.json)
    assert service.get(path).body == reply.body


@given(patches=st.lists(_patches(USER), min_size=1, max_size=3))
def test_a_user_is_patched_as_the_rfc_says(service: Service, patches: list[Patch]) -> None:
    """Any merge patch of a user has the outcome of RFC 7396 on the user shown, or 422 naming each bad member."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    for patch in patches:
        _check(service, path, patch, USER)


@given(patches=st.lists(_patches(PRODUCT), min_size=1, max_size=3))
def test_a_product_is_patched_as_the_rfc_says(service: Service, patches: list[Patch]) -> None:
    """The same of a product, whose price is also judged by the currency it then has."""
    path = f"/v1/products/{shop.a_product(service)['id']}"
    for patch in patches:
        _check(service, path, patch, PRODUCT)


@pytest.mark.parametrize(
    ("make", "required", "optional"),
    [
        (lambda s: f"/v1/users/{shop.a_user(s)['id']}", ["name", "email"], {"status": "ACTIVE"}),
        (
            lambda s: f"/v1/products/{shop.a_product(s, description='x', status='ARCHIVED')['id']}",
            ["sku", "name", "price", "currency"],
            {"description": None, "stock": None, "status": "ACTIVE"},
        ),
        (
            lambda s: (
                f"/v1/users/{(u := shop.a_user(s))['id']}/addresses/{shop.an_address(s, u, region='R', line2='L')['id']}"
            ),
            ["recipient", "line1", "city", "postalCode", "country"],
            {"line2": None, "region": None},
        ),
        (
            lambda s: f"/v1/orders/{shop.an_order(s)['id']}",
            ["userId", "lineItems"],
            {"shippingAddressId": None},
        ),
        (lambda s: f"/v1/line-items/{shop.an_order(s)['lineItems'][0]['id']}", ["quantity"], {}),
    ],
)
def test_null_sets_the_default_or_is_422_where_required(
    service: Service, make: Callable[[Service], str], required: list[str], optional: dict[str, Any]
) -> None:
    """null removes: an optional member gets its default, a required one is 422 and named."""
    path = make(service)
    reply = service.call("PATCH", path, dict.fromkeys(required))
    assert (reply.status, shop.fields_of(reply.json)) == (422, set(required))
    assert {error["code"] for error in reply.json["errors"]} == {"required"}
    done = service.call("PATCH", path, dict.fromkeys(optional))
    assert (done.status, {name: done.json[name] for name in optional}) == (200, optional)


@pytest.mark.parametrize("value", [None, 1, {"a": None}])
def test_an_unknown_member_is_422_also_where_it_is_null(service: Service, value: Any) -> None:
    """Any unknown member is 422 and named: null is no way around."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    reply = service.call("PATCH", path, {"nickname": value, "name": "Grace"})
    assert (reply.status, shop.fields_of(reply.json)) == (422, {"nickname"})
    assert service.get(path).json["name"] == "Ada"


@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b'"name"', b"true", b"", b"{", b'{"name":}'])
def test_a_patch_that_is_no_object_is_400(service: Service, body: bytes) -> None:
    """What is not a JSON object cannot be read as a patch of an item."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    assert service.call("PATCH", path, body).status == 400


def test_arrays_are_replaced(service: Service) -> None:
    """An array in a patch replaces the whole array: lines that are not in it are gone."""
    one, other = shop.a_product(service), shop.a_product(service)
    order = shop.an_order(service, (one, 1), (other, 2))
    kept = order["lineItems"][1]
    lines = [
        {"id": kept["id"], "productId": other["id"], "quantity": 2},
        {"productId": one["id"], "quantity": 4},
    ]
    reply = service.call("PATCH", f"/v1/orders/{order['id']}", {"lineItems": lines})
    assert reply.status == 200
    found = {line["id"]: line for line in reply.json["lineItems"]}
    assert len(found) == 2
    assert found.pop(kept["id"]) == kept
    (new,) = found.values()
    assert (new["productId"], new["quantity"]) == (one["id"], 4)
    assert order["lineItems"][0]["id"] not in found
    for bad in ([], [None], {"0": {"quantity": 2}}, [{"id": kept["id"], "quantity": 3}]):
        assert service.call("PATCH", f"/v1/orders/{order['id']}", {"lineItems": bad}).status == 422


def test_a_patch_is_one_step(service: Service) -> None:
    """A patch of which one member is refused changes none."""
    order = shop.an_order(service)
    path = f"/v1/orders/{order['id']}"
    reply = service.call("PATCH", path, {"status": "FULFILLED", "shippingAddressId": "nowhere"})
    assert reply.status == 422
    assert shop.get(service, path) == order


# --- what may be sent, and what comes back ---


@pytest.mark.parametrize(
    "kind",
    [
        "application/merge-patch+json",
        "application/json",
        "Application/Merge-Patch+JSON",
        "application/json; charset=utf-8",
        "application/merge-patch+json;charset=UTF-8",
    ],
)
def test_both_media_types_are_taken(service: Service, kind: str) -> None:
    """PATCH takes application/merge-patch+json and application/json, in any case and with parameters."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    reply = service.call("PATCH", path, {"name": "Grace"}, content_type=kind)
    assert (reply.status, reply.json["name"]) == (200, "Grace")


@pytest.mark.parametrize(
    "kind",
    [
        "application/json-patch+json",
        "text/plain",
        "text/json",
        "",
        "application/*",
        "application/jsonx",
        "json",
    ],
)
def test_another_media_type_is_415(service: Service, kind: str) -> None:
    """Any other media type is 415, on PATCH with Accept-Patch (RFC 5789, 2.2)."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    patched = service.call("PATCH", path, {"name": "Grace"}, content_type=kind)
    assert patched.status == 415
    taken = {each.strip() for each in patched.headers["accept-patch"].split(",")}
    assert taken == {"application/merge-patch+json", "application/json"}
    assert service.call("PUT", path, shop.user_body(), content_type=kind).status == 415
    assert service.post("/v1/users", shop.user_body(), content_type=kind).status == 415
    assert service.get(path).json["name"] == "Ada"


def test_a_merge_patch_is_not_taken_elsewhere(service: Service) -> None:
    """A PUT or a POST of a merge patch is 415: it is no whole representation."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    kind = {"content_type": "application/merge-patch+json"}
    assert service.call("PUT", path, shop.user_body(), **kind).status == 415
    assert service.post("/v1/users", shop.user_body(), **kind).status == 415


@pytest.mark.parametrize(
    "prefer",
    [
        "return=minimal",
        'return="minimal"',
        "Return=Minimal",
        "respond-async, return=minimal",
        "return=minimal; x=1",
    ],
)
def test_prefer_minimal_is_204(service: Service, prefer: str) -> None:
    """`Prefer: return=minimal` is answered 204, with the new ETag and Preference-Applied and no body (RFC 7240)."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    before = service.get(path).headers["etag"]
    reply = service.call("PATCH", path, {"name": "Grace"}, prefer=prefer)
    assert (reply.status, reply.body) == (204, b"")
    assert "return=minimal" in reply.headers["preference-applied"]
    assert "content-type" not in reply.headers
    after = service.get(path)
    assert after.json["name"] == "Grace"
    assert reply.headers["etag"] == after.headers["etag"] != before


@pytest.mark.parametrize(
    "prefer", ["return=representation", "respond-async", "return=minimalist", "x=return=minimal"]
)
def test_another_preference_is_200(service: Service, prefer: str) -> None:
    """Without that preference the answer is 200 with the item."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    reply = service.call("PATCH", path, {"name": "Grace"}, prefer=prefer)
    assert (reply.status, reply.json["name"]) == (200, "Grace")


def test_a_refused_patch_is_refused_whatever_is_preferred(service: Service) -> None:
    """A preference changes the form of success alone."""
    path = f"/v1/users/{shop.a_user(service)['id']}"
    assert service.call("PATCH", path, {"name": ""}, prefer="return=minimal").status == 422


def test_put_replaces_and_omitted_members_get_their_defaults(service: Service) -> None:
    """A PUT that omits an optional member sets its default; one that omits a required member is 422."""
    product = shop.a_product(service, description="A light", status="ARCHIVED", stock=5)
    path = f"/v1/products/{product['id']}"
    body = {name: product[name] for name in ("sku", "name", "price", "currency")}
    reply = service.call("PUT", path, body)
    assert reply.status == 200
    assert {name: reply.json[name] for name in DEFAULTS} == DEFAULTS
    for name in body:
        without = {other: value for other, value in body.items() if other != name}
        refused = service.call("PUT", path, without)
        assert (refused.status, shop.fields_of(refused.json)) == (422, {name})
