"""The OpenAPI document: valid, complete, and true of what the service does."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openapi_spec_validator import validate

from tests import shop
from tests.given_clock import GivenClock
from tests.laws.test_new_resource import WITH_REVIEWS, migration
from tests.rest.contract import Contract, Held, Specification
from tests.rest.test_versions import SECOND
from tests.service import Service
from tradepost.webhooks.envelope import EventRow, render
from tradepost.webhooks.signature import signed

Json = dict[str, Any]


def contract_of(service: Service, version: str = "v1") -> Contract:
    return Contract(shop.get(service, f"/{version}/openapi.json", key=None))


@pytest.fixture(scope="module")
def both(new_service: Callable[..., Service]) -> Service:
    """A service with a second version that renames members."""
    return new_service("sqlite", versions=SECOND)


@pytest.fixture(scope="module", params=["v1", "v2"])
def contract(request: pytest.FixtureRequest, both: Service) -> Contract:
    return contract_of(both, request.param)


# --- the document in itself ---


def test_the_document_is_openapi(contract: Contract) -> None:
    """It is what OpenAPI 3.1 says a document is."""
    validate(contract.document, cls=Specification)
    assert contract.document["openapi"].startswith("3.1.")


def test_the_document_states_the_retries_that_are_set(new_service: Callable[..., Service]) -> None:
    """Another schedule and another time to answer are what receivers read, wherever the document speaks of them."""
    service = new_service("sqlite", webhook_schedule="2.5,90,7200,120", webhook_timeout="1")
    document = shop.get(service, "/v1/openapi.json", key=None)
    introduction = " ".join(document["info"]["description"].split())
    assert (
        "within one second acknowledges the event; otherwise it is sent again, up to four times in two hours."
        in introduction
    )
    received = document["webhooks"]["dev.tradepost.order.placed"]["post"]["responses"]
    assert received["2XX"]["description"] == "Any 2xx response within 1 second acknowledges the event."
    assert (
        "sent again 2.5 s, 90 s, 2 h and 2 min after the previous failure"
        in received["default"]["description"]
    )
    schemas = document["components"]["schemas"]
    for schema, number in (("EventDelivered", "attempt"), ("WebhookDeliveryAttempt", "number")):
        stated = schemas[schema]["properties"][number]
        assert (stated["minimum"], stated["maximum"]) == (0, 4)
        assert stated["description"] == "0 is the first attempt; 1 to 4 are retries."


def test_the_document_states_that_there_is_one_retry(new_service: Callable[..., Service]) -> None:
    """A schedule of one delay is one retry."""
    document = shop.get(new_service("sqlite", webhook_schedule="5"), "/v1/openapi.json", key=None)
    received = document["webhooks"]["dev.tradepost.order.placed"]["post"]["responses"]
    assert "sent again 5 s after the previous failure" in received["default"]["description"]
    attempt = document["components"]["schemas"]["EventDelivered"]["properties"]["attempt"]
    assert (attempt["maximum"], attempt["description"]) == (1, "0 is the first attempt; 1 is the retry.")


def test_operations_have_names_of_their_own(contract: Contract) -> None:
    """Every operation has a name that no other has, a summary, a tag, and says what it needs."""
    seen = set()
    for path, item in contract.document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            assert operation["operationId"] not in seen
            seen.add(operation["operationId"])
            assert operation["summary"], path
            assert operation["tags"][0] in {tag["name"] for tag in contract.document["tags"]}
            public = method == "options" or operation["tags"] == ["Documents"]
            assert bool(operation["security"]) != public, path
    assert {"listProducts", "createOrder", "getUserAddress", "updateOrderLineItem", "deleteApiKey"} <= seen


def _examples(media: Json) -> list[Any]:
    """What a content shows: one example, or one of each shape it may have."""
    return (
        [each["value"] for each in media["examples"].values()] if "examples" in media else [media["example"]]
    )


def _media(part: Any) -> Iterator[tuple[Json, Any]]:
    """Every (schema, example) below."""
    if isinstance(part, dict):
        if "schema" in part and ("example" in part or isinstance(part.get("examples"), dict)):
            yield from ((part["schema"], each) for each in _examples(part))
        for each in part.values():
            yield from _media(each)
    elif isinstance(part, list):
        for each in part:
            yield from _media(each)


def test_every_example_fits_its_schema(contract: Contract) -> None:
    """What is shown as an example is an example."""
    shown = list(_media(contract.document))
    assert len(shown) > 100
    for schema, example in shown:
        assert not contract.misfits(example, schema, closed=True), (schema, example)


def test_everything_in_components_is_referred_to(contract: Contract) -> None:
    """Nothing is described that no operation uses."""
    text = json.dumps(contract.document)
    for section, named in contract.document["components"].items():
        for name in named if section != "securitySchemes" else ():
            assert f'"#/components/{section}/{name}"' in text


def test_links_lead_to_operations(contract: Contract) -> None:
    """What a new item links to is an operation, given all that its path needs."""
    named = {
        operation["operationId"]: (path, method)
        for path, item in contract.document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }
    links: list[Json] = [
        link
        for item in contract.document["paths"].values()
        for link in item.get("post", {}).get("responses", {}).get("201", {}).get("links", {}).values()
    ]
    assert {"getUser", "listUserAddresses", "getUserAddress", "createOrderLineItem"} <= {
        link["operationId"] for link in links
    }
    for link in links:
        needed = {
            each["name"] for each in contract.parameters(*named[link["operationId"]]) if each["in"] == "path"
        }
        assert link["parameters"].keys() == needed


# --- the document and the routes ---


def test_what_is_routed_is_documented_and_nothing_else(both: Service) -> None:
    """The routes and pages of a version, method by method, are exactly those of its document."""
    for version, routes in both.app.rest.routes.items():
        found = {
            (method.strip(), route.template)
            for route in [*routes._collections.values(), *routes._items.values()]
            for method in route.allow.split(",")
        }
        contract = contract_of(both, version.name)
        pages = [
            path
            for path in both.app.documents
            if not path.startswith("/v") or path.startswith(f"/{version.name}/")
        ]
        pages = [path for path in pages if not path.endswith((".js", ".css"))]  # parts of a page
        templates = {
            "/event-types/{id}"
            if path.startswith("/event-types/")
            else path.replace(path[10:], "{id}")
            if path.startswith("/problems/")
            else path
            for path in [*pages, "/versions"]
        }
        found |= {(method, path) for path in templates for method in ("GET", "HEAD", "OPTIONS")}
        assert contract.operations() == found


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS"])
def test_what_is_not_documented_is_not_allowed(both: Service, method: str) -> None:
    """A method that the document does not list answers 405, and Allow lists those it does."""
    contract = contract_of(both)
    for path, item in contract.document["paths"].items():
        allowed = {each.upper() for each in item if each != "parameters"}
        at = path.replace("{kind}", "invalid").replace("{type}", "dev.tradepost.order.placed")
        if method not in allowed:
            reply = both.call(method, at, {} if method in ("POST", "PUT", "PATCH") else None)
            assert reply.status == 405, (method, path)
            assert {each.strip() for each in reply.headers["allow"].split(",")} == allowed
        elif method == "OPTIONS":
            reply = both.call(method, at, key=None)
            assert {each.strip() for each in reply.headers["allow"].split(",")} == allowed


def test_enumerated_pages_are_those_there_are(both: Service) -> None:
    """The kinds and event types that the document enumerates are the pages there are."""
    contract = contract_of(both)
    for path in ("/problems/{kind}", "/event-types/{type}"):
        root = path.partition("{")[0]
        (values,) = (
            each["schema"]["enum"] for each in contract.parameters(path, "get") if each["in"] == "path"
        )
        assert {f"{root}{value}" for value in values} == {
            page for page in both.app.documents if page.startswith(root)
        }


# --- the document and the answers ---


def _conditions(held: Held, path: str, tag: str) -> None:
    assert held.get(path, if_none_match=tag).status == 304
    assert held.get(path, if_match='"gone"').status == 412
    assert held.get(path, if_match="nonsense").status == 400
    for method in ("HEAD", "OPTIONS"):
        assert held.call(method, path).status in (200, 204)
    assert held.call("HEAD", path, if_none_match=tag).status == 304
    assert held.call("HEAD", path, if_match='"gone"').status == 412


def _refusals(held: Held, path: str, methods: tuple[str, ...]) -> None:
    """What any address answers to whoever may not, or does not ask right."""
    nobody = held.new_key("introspection")
    for method in methods:
        body: Json | None = {} if method in ("POST", "PUT", "PATCH") else None
        assert held.call(method, path, body, key=None).status == 401
        assert held.call(method, path, body, key="tp_nobody_nothing").status == 401
        assert held.call(method, path, body, key=nobody).status == 403
        assert held.call(method, path, body, accept="text/html").status == 406
        assert held.call(method, f"{path}?colour=red", body).status == 400
        if body is not None:
            assert held.call(method, path, b"x", content_type="text/plain").status == 415
            assert held.call(method, path, b"{").status == 400
            assert held.call(method, path, b" " * (1 << 21)).status == 413


def _lists(held: Held, path: str, version: int) -> None:
    """Pages of a list, in each way there is."""
    page = held.get(f"{path}?limit=1&sort=-id")
    assert page.status == 200
    if page.json["next"] is not None:
        assert held.get(f"{path}?limit=1&sort=-id&cursor={page.json['next']}").status == 200
    assert held.get(f"{path}?limit=2&offset=1").status == 200
    assert held.get(f"{path}?fields=id").status == 200
    assert held.get(path, accept=f"application/vnd.tradepost.v{version}+json").status == 200
    assert held.get(f"{path}?limit=0").status == 400
    _conditions(held, f"{path}?limit=1&sort=id", held.get(f"{path}?limit=1&sort=id").headers["etag"])
    _refusals(held, path, ("GET", "HEAD"))


def _items(held: Held, path: str, field: str) -> Any:
    """An item, in each way it can be read."""
    reply = held.get(path)
    assert reply.status == 200
    assert held.get(f"{path}?fields={field}").json.keys() == {"id", field}
    assert held.get(f"{path}?fields=colour").status == 400
    gone = path.rpartition("/")[0] + "/nobody"
    assert held.get(gone).status == 404
    assert held.call("HEAD", gone).status == 404
    _conditions(held, path, reply.headers["etag"])
    _refusals(held, path, ("GET", "HEAD"))
    return reply


def _changes(held: Held, path: str, change: Json) -> None:
    """Every way an item can be changed, and be refused a change."""
    assert held.call("PATCH", path, change).status == 200
    assert held.call("PATCH", path, change, prefer="return=minimal").status == 204
    reply = held.get(path)
    assert held.call("PUT", path, reply.json, if_match=reply.headers["etag"]).status == 200
    gone = path.rpartition("/")[0] + "/nobody"
    for method in ("PUT", "PATCH"):
        assert held.call(method, path, reply.json, if_match='"gone"').status == 412
        assert held.call(method, path, {"colour": "red"}).status == 422
        assert held.call(method, gone, reply.json).status == 404
    _refusals(held, path, ("PUT", "PATCH"))
    _removals(held, path)


def _removals(held: Held, path: str) -> None:
    """Every way to be refused a DELETE."""
    assert held.call("DELETE", path, if_match='"gone"').status == 412
    assert held.call("DELETE", path.rpartition("/")[0] + "/nobody").status == 404
    _refusals(held, path, ("DELETE",))


def _creations(held: Held, path: str, body: Json) -> Any:
    """A new item, sent twice under one key; and every way to be refused one."""
    made = held.call("POST", path, body, idempotency_key=f'"{path}"')
    assert made.status == 201, made
    again = held.call("POST", path, body, idempotency_key=f'"{path}"')
    assert (again.status, again.headers["idempotency-replayed"], again.body) == (201, "true", made.body)
    assert held.call("POST", path, {"colour": "red"}, idempotency_key=f'"{path}"').status == 422
    assert held.call("POST", path, body, idempotency_key="").status == 400
    assert held.call("POST", path, {"colour": "red"}).status == 422
    _refusals(held, path, ("POST",))
    return made.json


_PARENTS = {"{userId}": "users", "{orderId}": "orders", "{webhookEndpointId}": "webhook-endpoints"}


class Walk:
    """A walk through every resource by the examples of the document, with the ids of what it makes."""

    def __init__(self, held: Held, version: int) -> None:
        self.held = held
        self.version = version
        self.ids: dict[str, str] = {}

    def example(self, path: str, method: str, media: str = "application/json") -> Json:
        """The example of a body, its ids those that were made."""
        operation = self.held.contract.document["paths"][f"/v{self.version}{path}"][method]
        text = json.dumps(_examples(operation["requestBody"]["content"][media])[0])
        for kind, known in self.ids.items():
            text = text.replace(self._sample(kind), known)
        example: Json = json.loads(text)
        return example

    def _sample(self, kind: str) -> str:
        """The id that examples give a kind."""
        document = self.held.contract.document
        path = next(path for path in document["paths"] if path.endswith(f"/{kind}/{{id}}"))
        return str(next(p["example"] for p in document["paths"][path]["parameters"] if p.get("name") == "id"))

    def resource(self, collection: str, *, under: str = "", body: Json | None = None, field: str) -> str:
        """All that can be done with a resource but its end; the path of the item."""
        template = f"{under}/{collection}"
        path = f"/v{self.version}{template}"
        for name, known in _PARENTS.items():
            path = path.replace(name, self.ids.get(known, ""))
        item = self.held.contract.document["paths"][f"/v{self.version}{template}/{{id}}"]
        made = _creations(self.held, path, body or self.example(template, "post"))
        self.ids[collection] = made["id"]
        _lists(self.held, path, self.version)
        one = f"{path}/{made['id']}"
        _items(self.held, one, field)
        if "patch" in item:
            _changes(self.held, one, self.example(f"{template}/{{id}}", "patch"))
        elif "delete" in item:
            _removals(self.held, one)
        if under:
            gone = path.replace(self.ids[under.split("/")[1]], "nobody")
            assert self.held.get(gone).status == 404
            assert self.held.post(gone, {}).status == 404
        return one


def _renamed(contract: Contract, name: str) -> str:
    """What this version calls a product's name."""
    return "title" if "title" in contract.document["components"]["schemas"]["Product"]["properties"] else name


def _all_of(held: Held, version: int) -> None:
    """The walk: everything made, read, changed, refused, and in the end removed."""
    walk = Walk(held, version)
    user = walk.resource("users", field="status")
    address = walk.resource("addresses", under="/users/{userId}", field="city")
    product = walk.resource("products", field=_renamed(held.contract, "name"))
    example = walk.example("/products", "post")
    assert held.post(f"/v{version}/products", example).status == 409
    held.call("PATCH", product, {"status": "ACTIVE", "stock": 10})
    held.call("PATCH", user, {"status": "ACTIVE"})
    order = f"/v{version}/orders/{held.made(f'/v{version}/orders', walk.example('/orders', 'post'))['id']}"
    walk.ids["orders"] = order.rpartition("/")[2]
    first = next(iter(held.get(order).json[_lines(held.contract)]))["id"]
    for at in ("", "/orders/{orderId}"):
        line = walk.resource("line-items", under=at, field="productId")
        assert held.call("DELETE", line).status == 204
    assert held.call("DELETE", f"/v{version}/line-items/{first}").status == 422
    assert held.call("DELETE", f"{order}/line-items/{first}").status == 422
    _lists(held, f"/v{version}/orders", version)
    fulfilled = walk.resource("orders", field="currency")
    assert held.call("DELETE", fulfilled).status == 409
    assert held.call("PATCH", fulfilled, {"status": "PENDING"}).status == 422
    assert held.call("DELETE", order).status == 204
    _lists(held, f"/v{version}/events", version)
    event = held.get(f"/v{version}/events?limit=1").json["items"][0]
    _items(held, f"/v{version}/events/{event['id']}", "type")
    walk.ids["events"] = event["id"]
    _webhooks(held, walk)
    key = walk.resource("api-keys", field="prefix")
    for path in (address, product, user, key):
        assert held.call("DELETE", path).status == 204
    assert held.call("DELETE", key).status == 204


def _webhooks(held: Held, walk: Walk) -> None:
    endpoint = walk.resource("webhook-endpoints", field="url")
    assert held.call("PATCH", endpoint, {"status": "ENABLED"}).status == 200
    current = walk.resource("secrets", under="/webhook-endpoints/{webhookEndpointId}", field="status")
    for path in (current, f"{current.rpartition('/')[0]}"):
        assert held.call("DELETE" if path == current else "POST", path).status == 409
    (retiring,) = (
        each for each in held.get(f"{endpoint}/secrets").json["items"] if each["status"] == "RETIRING"
    )
    assert held.call("DELETE", f"{endpoint}/secrets/{retiring['id']}").status == 204
    walk.resource("webhook-deliveries", field="eventType")
    past = walk.example("/webhook-redeliveries", "post") | {"from": "2020-01-01"}
    walk.resource("webhook-redeliveries", body=past, field="made")
    deliveries = f"/v{walk.version}/webhook-deliveries"
    assert held.made(deliveries, past)["finishedAt"] is None
    assert held.post(deliveries, past | {"from": 1}).status == 422
    assert held.call("DELETE", endpoint).status == 204


def _lines(contract: Contract) -> str:
    return (
        "lines"
        if "lines" in contract.document["components"]["schemas"]["Order"]["properties"]
        else "lineItems"
    )


def _documents(held: Held) -> None:
    """Every document, in each way it can be read."""
    for path in held.app.documents:
        if path.endswith((".js", ".css")):  # parts of a page
            continue
        if path.startswith("/v") and path != "/versions" and not path.startswith("/v1/"):
            continue
        for accept in ("text/html", "application/json"):
            reply = held.get(path, key=None, accept=accept)
            assert reply.status == 200
            assert held.get(path, key=None, accept=accept, if_none_match="*").status == 304
        assert held.call("HEAD", path, key=None).status == 200
        assert held.call("OPTIONS", path, key=None).status == 204
        assert held.get(path, key=None, if_match='"gone"').status == 412
        assert held.get(path, key=None, if_none_match="nonsense").status == 400
    for path in ("/problems/nothing", "/event-types/nothing"):
        for method in ("GET", "HEAD", "OPTIONS"):
            assert held.call(method, path, key=None).status == 404


def test_answers_are_as_documented(service: Service) -> None:
    """On a walk through everything, each answer has a documented status, header fields, type and schema."""
    held = Held(service, contract_of(service))
    _all_of(held, 1)
    _documents(held)
    walked = {(method, path) for method, path, _ in held.met}
    every = {
        (method.upper(), path)
        for path, item in held.contract.document["paths"].items()
        for method in item
        if method != "parameters"
    }
    assert every - walked == set()


def test_what_is_documented_happens(new_service: Callable[..., Service]) -> None:
    """No status is documented that the walk does not meet, but for those of failures and of races."""
    service = new_service("sqlite")
    held = Held(service, contract_of(service))
    _all_of(held, 1)
    _documents(held)
    rare = {"410", "429", "500", "503"}
    unmet = {
        (method.upper(), path, status)
        for path, item in held.contract.document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
        for status in operation["responses"]
        if status not in rare and (method.upper(), path, int(status)) not in held.met
    }
    races = {each for each in unmet if each[2] == "409"}
    bare = {each for each in unmet if each[0] == "HEAD"}
    assert unmet - races - bare == set()


def test_answers_of_the_second_version_are_as_documented(both: Service) -> None:
    """A version that renames members documents and answers the new names, embedded ones too."""
    contract = contract_of(both, "v2")
    product = contract.document["components"]["schemas"]["Product"]
    assert {"title", "cost"} <= product["properties"].keys()
    assert not {"name", "price"} & product["properties"].keys()
    names = {each["name"] for each in contract.parameters("/v2/products", "get")}
    assert {"title", "cost", "cost[gte]"} <= names
    assert not {"name", "price"} & names
    (sort,) = (each for each in contract.parameters("/v2/products", "get") if each["name"] == "sort")
    assert "-cost" in sort["schema"]["enum"]
    _all_of(Held(both, contract), 2)


def test_the_rare_answers_are_as_documented(
    new_service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many requests, a failure inside, and a version at each stage of its life answer as documented."""
    clock = GivenClock("2026-05-01")
    dates = '{"v1": {"deprecated": "2026-06-01", "sunset": "2026-12-01"}}'
    service = new_service("sqlite", clock=clock, api_versions=dates, rate_limit="40/hour")
    held = Held(service, contract_of(service))
    user = held.made("/v1/users", shop.user_body())
    with monkeypatch.context() as patched:
        patched.setattr(service.app.rest.performer, "perform", None)
        for method, body in (("PATCH", {}), ("PUT", user), ("DELETE", None)):
            assert held.call(method, f"/v1/users/{user['id']}", body).status == 500
    clock.set("2026-07-01")
    deprecated = contract_of(service)
    assert all(
        operation.get("deprecated")
        for item in deprecated.document["paths"].values()
        for method, operation in item.items()
        if method != "parameters" and operation["tags"] != ["Documents"]
    )
    held.contract = deprecated
    for path in ("/v1/users", f"/v1/users/{user['id']}", "/v1/openapi.json", "/v1/docs"):
        for method in ("GET", "HEAD", "OPTIONS"):
            assert "sunset" in held.call(method, path).headers
    while held.get("/v1/users").status == 200:
        pass
    assert held.call("HEAD", "/v1/users").status == 429
    assert held.post("/v1/orders", {}).status == 429
    clock.set("2027-01-01")
    for path, item in deprecated.document["paths"].items():
        if path.startswith("/v1"):
            for method in item.keys() - {"parameters"}:
                assert held.call(method.upper(), path).status == 410


# --- the document and what receivers get ---


def test_what_receivers_get_is_documented(both: Service, contract: Contract) -> None:
    """For each type of event the document has the request that delivers it: its header fields and its body."""
    types = [each["type"] for each in shop.get(both, "/event-types", key=None)["items"]]
    assert list(contract.document["webhooks"]) == types
    for name in types:
        row = ("019aa0c1-8d2e-7000-8000-000000000000", "http://shop.example", name, "orders/1", _MOMENT)
        data = {"entityType": name.split(".")[-2], "entityId": row[0], "eventType": name}
        data |= {"timestamp": _MOMENT, "schemaVersion": "1"}
        body = render(EventRow(*row, "http://shop.example/x", json.dumps(data), None), _MOMENT, 7)
        operation = contract.document["webhooks"][name]["post"]
        media = operation["requestBody"]["content"]
        assert set(media) == {"application/cloudevents+json", "application/json"}
        for each in media.values():
            assert not contract.misfits(json.loads(body), each["schema"], closed=True)
            assert contract.misfits({**json.loads(body), "type": "x"}, each["schema"])
            assert contract.misfits({**json.loads(body), "attempt": 8}, each["schema"])
        fields = dict(signed(row[0], 1_795_162_530, body, "whsec_" + "A" * 43 + "="))
        said = {each["name"]: each for each in map(contract.resolved, operation["parameters"])}
        assert said.keys() == fields.keys()
        for field, value in fields.items():
            assert not contract.misfits(value, said[field]["schema"])
        assert set(operation["responses"]) == {"2XX", "default"}


def test_a_redelivery_is_documented_where_it_may_be_asked_for(contract: Contract) -> None:
    """The body and the answer of a redelivery are among those of a POST to the deliveries, each told from the other."""
    version = contract.document["info"]["version"]
    posts = [contract.document["paths"][f"/{version}/{name}"]["post"] for name in _BOTH]
    asked = [post["requestBody"]["content"]["application/json"] for post in posts]
    answered = [post["responses"]["201"]["content"]["application/json"] for post in posts]
    for here, there in (asked, answered):
        ordinary, redelivery = _examples(here)
        assert [redelivery] == _examples(there)
        for each in (ordinary, redelivery):
            assert not contract.misfits(each, here["schema"])
    ordinary, _ = _examples(asked[0])
    assert contract.misfits({**ordinary, "from": _MOMENT}, asked[0]["schema"])


_BOTH = ("webhook-deliveries", "webhook-redeliveries")
_MOMENT = "2026-11-20T08:15:30.123Z"


# --- the document and the requests ---


_A_VALUE = {"date-time": "2026-11-20T08:15:30Z"}


def test_documented_parameters_are_taken(both: Service, contract: Contract) -> None:
    """Every query parameter of every list is taken, with each of the values that it enumerates."""
    for path, item in contract.document["paths"].items():
        if not item.get("get", {}).get("operationId", "").startswith("list") or "{" in path:
            continue
        for each in contract.parameters(path, "get"):
            if each["in"] != "query" or each["name"] == "cursor":
                continue
            schema = each["schema"]
            values = schema.get("enum") or schema.get("items", {}).get("enum") or []
            values = values or [
                schema.get("default", schema.get("maximum", _A_VALUE.get(schema.get("format"), "x")))
            ]
            values = [1] if schema["type"] in ("number", "integer") else values
            for value in values:
                assert both.get(f"{path}?{each['name']}={value}").status == 200, (path, each["name"], value)


def test_documented_bounds_are_those_there_are(both: Service) -> None:
    """A body beyond a documented bound is refused, and one at the bound is not refused for it."""
    contract = contract_of(both)
    schemas = contract.document["components"]["schemas"]
    inputs = {"UserInput": "users", "ProductInput": "products", "ApiKeyInput": "api-keys"}
    inputs["WebhookEndpointInput"] = "webhook-endpoints"
    for name, path in inputs.items():
        for member, schema in schemas[name]["properties"].items():
            for beyond, at in _at_the_bounds(schema):
                said = both.post(f"/v1/{path}", {member: beyond}).json
                assert member in shop.fields_of(said), (member, beyond)
                assert contract.misfits({member: beyond}, {"properties": {member: schema}})
                said = both.post(f"/v1/{path}", {member: at}).json
                wrong = {each["code"] for each in said["errors"] if each["field"] == member}
                assert not wrong & {"length", "out_of_range", "unknown_value", "type"}, (member, at, said)


def _at_the_bounds(schema: Json) -> Iterator[tuple[Any, Any]]:
    """(just beyond, just within) for each bound."""
    if "maxLength" in schema:
        yield "x" * (schema["maxLength"] + 1), "x" * schema["maxLength"]
    if schema.get("minLength"):
        yield "x" * (schema["minLength"] - 1), "x" * schema["minLength"]
    if "minimum" in schema:
        yield schema["minimum"] - 1, schema["minimum"]
    if "maximum" in schema and "integer" in schema["type"]:
        yield schema["maximum"] + 1, schema["maximum"]
    if schema.get("minItems"):
        yield [], ["admin"]
    if "enum" in schema:
        yield "PURPLE", schema["enum"][0]
    if "null" not in schema.get("type", ["null"]):
        yield (
            None,
            schema.get("enum", [None])[0] or {"number": 1, "array": ["admin"]}.get(schema["type"], "EUR"),
        )


def test_a_declared_resource_is_documented(new_service: Callable[..., Service]) -> None:
    """A resource that was only declared is documented whole, and its examples are taken."""
    service = new_service("sqlite", resources=WITH_REVIEWS, migration=migration("sqlite"))
    contract = contract_of(service)
    validate(contract.document, cls=Specification)
    product = shop.a_product(service)
    held = Held(service, contract)
    body = contract.document["paths"]["/v1/reviews"]["post"]["requestBody"]["content"]["application/json"][
        "example"
    ]
    made = held.made("/v1/reviews", body | {"productId": product["id"]})
    _items(held, f"/v1/reviews/{made['id']}", "stars")
    _changes(held, f"/v1/reviews/{made['id']}", {"stars": 5})
    _lists(held, "/v1/reviews", 1)
    assert held.post("/v1/reviews", body | {"productId": product["id"]}).status == 409
    assert contract.document["components"]["schemas"]["ReviewInput"]["properties"]["stars"]["maximum"] == 5
    assert "dev.tradepost.review.created" in json.dumps(contract.document["paths"]["/event-types/{type}"])
    assert shop.get(service, "/event-types/dev.tradepost.review.created")["title"].endswith("review.created")


def test_the_document_names_the_service(new_service: Callable[..., Service]) -> None:
    """Its server and the problem types are at the configured address, or at the one asked."""
    asked = shop.get(new_service("sqlite"), "/v1/openapi.json", host="one.example")
    assert asked["servers"] == [{"url": "http://one.example"}]
    assert '"http://one.example/problems/invalid"' in json.dumps(asked)
    configured = new_service("sqlite", base_url="https://shop.example/api")
    assert shop.get(configured, "/v1/openapi.json")["servers"] == [{"url": "https://shop.example/api"}]
