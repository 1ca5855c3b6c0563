"""The documents: what people and programs read, and how it is answered."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from tests import shop
from tests.given_clock import GivenClock
from tests.rest.test_versions import SECOND
from tests.service import Reply, Service
from tradepost import problems
from tradepost.http.answers import status_of

HTML = "text/html; charset=utf-8"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.fixture(scope="module")
def service(new_service: Callable[..., Service]) -> Service:
    return new_service("sqlite")


class Seen(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.anchors.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")


def _page(service: Service, path: str, **headers: str) -> str:
    reply = service.get(path, key=None, **headers)
    assert (reply.status, reply.headers["content-type"]) == (200, HTML)
    return reply.body.decode()


def _pages(service: Service) -> list[str]:
    """The addresses of all pages but that of /graphql, which has scripts: see test_playground.py."""
    return [
        path
        for path in service.app.documents.keys() - {"/graphql"}
        if service.get(path, key=None, accept=BROWSER).headers["content-type"] == HTML
    ]


# --- every document ---


def test_every_document_has_its_methods_and_its_etag(service: Service) -> None:
    """GET, HEAD, OPTIONS, 304 by ETag, 405 for all else; kept only as long as the ETag says."""
    for path in service.app.documents.keys() - {"/graphql"}:  # which is no document
        reply = service.get(path, key=None)
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-cache")
        assert re.fullmatch(r'"[\x21\x23-\x7e]+"', reply.headers["etag"])
        if path != "/metrics":  # which tells of each request
            unchanged = service.get(path, key=None, if_none_match=f"W/{reply.headers['etag']}")
            assert (unchanged.status, unchanged.body) == (304, b"")
            head = service.call("HEAD", path, key=None)
            assert (head.status, head.body) == (200, b"")
            for name in ("etag", "content-type", "content-length"):
                assert head.headers[name] == reply.headers[name]
        options = service.call("OPTIONS", path, key=None)
        assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        refused = service.call("POST", path, {}, key=None)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_documents_speak_of_the_address_they_are_asked_at(service: Service) -> None:
    """One address is never told another, though what is said is put together once."""
    for path in ("/", "/docs", "/v1/openapi.json", "/event-types", "/problems/invalid"):
        for host in ("one.example", "two.example:8443"):
            body = service.get(path, key=None, host=host).body.decode()
            assert f"http://{host}/" in body
            assert ".invalid" not in body.replace("api.example.com", "")
            assert not ({"one.example", "two.example"} - {host.partition(":")[0]}) & set(
                re.findall(r"\w+\.example", body)
            )


def test_a_hostile_host_stays_text(service: Service) -> None:
    """What a client names as the host is escaped wherever a document repeats it."""
    for path in ("/", "/docs", "/problems", "/problems/invalid"):
        body = _page(service, path, host='"><script>alert(1)</script>')
        assert "<script" not in body
        assert "&lt;script&gt;" in body
    for path in ("/v1/openapi.json", "/event-types", "/event-types/dev.tradepost.user.created"):
        assert service.get(path, key=None, host='a"b\\c').json


def test_a_configured_address_is_the_one_told(new_service: Callable[..., Service]) -> None:
    """With a base URL every link starts with it, whatever host was asked."""
    service = new_service("sqlite", base_url="https://shop.example/api")
    for path in ("/", "/docs", "/problems"):
        own = [link for link in Seen(_page(service, path)).links if not link.startswith(("#", "data:"))]
        assert own
        assert all(link.startswith("https://shop.example/api/") for link in own)


# --- pages ---


def test_pages_refer_to_nothing_outside(service: Service) -> None:
    """A page works offline: no script, one inline style, and links to this service alone, each of which resolves."""
    for path in _pages(service):
        page = _page(service, path, accept=BROWSER)
        seen = Seen(page)
        assert seen.tags.count("style") == 1
        assert not {"script", "img", "iframe", "object", "form", "base"} & set(seen.tags)
        assert not {name for name in seen.attributes if name == "style" or name.startswith("on")}
        style = page.partition("<style>")[2].partition("</style>")[0]
        assert "url(" not in style
        assert "@import" not in style
        for link in set(seen.links) - {"data:,"}:
            where, _, anchor = link.partition("#")
            assert where == "" or link.startswith("http://shop.example/"), (path, link)
            if where:
                assert service.get(urlsplit(link).path, key=None, accept=BROWSER).status == 200, (path, link)
            else:
                assert seen.anchors.count(anchor) == 1, (path, link)
        assert len(set(seen.anchors)) == len(seen.anchors)


def test_pages_are_confined(service: Service) -> None:
    """Pages may apply their own style and nothing else; JSON needs no such rules."""
    for path in _pages(service):
        reply = service.get(path, key=None, accept=BROWSER)
        style = reply.body.decode().partition("<style>")[2].partition("</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = dict(
            part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["style-src"] == f"'sha256-{digest}'"
        assert policy["frame-ancestors"] == "'none'"
        assert not {"script-src", "connect-src"} & policy.keys()
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
    assert "content-security-policy" not in service.get("/v1/openapi.json").headers


def test_whoever_would_rather_have_json_gets_it(service: Service) -> None:
    """Pages that have JSON beside them go by Accept, and say that they vary by it."""
    for path in ("/", "/problems", "/problems/invalid"):
        for accept, wanted in (
            (BROWSER, HTML),
            ("*/*", HTML),
            ("text/html, application/json", HTML),
            ("application/json", "application/json"),
            ("application/json, text/plain, */*", "application/json"),
            ("text/html;q=0.1, application/json;q=0.2", "application/json"),
            ("text/html;q=0, */*", "application/json"),
            ("application/json;q=0, */*", HTML),
            ("image/png", HTML),
        ):
            reply = service.get(path, key=None, accept=accept)
            assert (reply.status, reply.headers["content-type"], reply.headers["vary"]) == (
                200,
                wanted,
                "Accept",
            )
    places = service.get("/", accept="application/json").json
    for address in (value for value in places.values() if str(value).startswith("http")):
        assert service.get(urlsplit(address).path, key=None, accept=BROWSER).status == 200


# --- the documentation ---


def test_the_documentation_mentions_every_operation(service: Service) -> None:
    """Each operation is there by its name, method and path, each parameter, body member and status with it."""
    text = html.unescape(_page(service, "/docs"))
    document = shop.get(service, "/v1/openapi.json")
    for path, item in document["paths"].items():
        assert f'<span class="path">{path}</span>' in text
        for method, operation in item.items():
            if method != "parameters":
                assert f"<code>{operation['operationId']}</code>" in text
    for name in [*document["components"]["headers"], "price[gte]", "lineItems[].quantity", "If-Match"]:
        assert f"<code>{name}</code>" in text
    for kind in problems.kinds():
        assert f'/problems/{kind.kind}"' in text


def test_the_documentation_of_each_version_is_its_own(new_service: Callable[..., Service]) -> None:
    """/docs is that of the newest version; each has its own below its name, in its own words."""
    service = new_service("sqlite", versions=SECOND)
    assert _page(service, "/docs") == _page(service, "/v2/docs")
    first, second = _page(service, "/v1/docs"), _page(service, "/v2/docs")
    assert "<code>price[gte]</code>" in first
    assert "<code>cost[gte]</code>" in second
    assert "<code>lines[].pieces</code>" in second
    assert "/v1/products" not in second
    assert 'href="http://shop.example/v1/docs"' in second


def test_documents_of_a_version_live_and_end_with_it(new_service: Callable[..., Service]) -> None:
    """A version's documents carry its life's headers, say that it is deprecated, and are gone after its end."""
    clock = GivenClock("2026-05-01")
    dates = '{"v1": {"deprecated": "2026-06-01", "sunset": "2026-12-01"}}'
    service = new_service("sqlite", clock=clock, api_versions=dates)
    for path in ("/v1/docs", "/v1/openapi.json"):
        clock.set("2026-05-01")
        before = service.get(path, key=None)
        assert "deprecated" not in before.headers
        clock.set("2026-07-01")
        after = service.get(path, key=None)
        assert {"deprecated", "deprecation", "sunset", "link"} <= after.headers.keys()
        assert after.headers["etag"] != before.headers["etag"]
        assert b"deprecated" in after.body
        clock.set("2026-12-02")
        gone = service.get(path, key=None)
        assert (gone.status, gone.json["type"].rpartition("/")[2]) == (410, "version-retired")
        assert "sunset" in gone.headers
    assert service.get("/docs", key=None).status == 200


def test_the_home_page_leads_to_the_newest_version(new_service: Callable[..., Service]) -> None:
    """What / calls the contract is that of the newest active version, also once the clock makes that another."""
    clock = GivenClock("2026-05-01")
    dates = '{"v2": {"deprecated": "2026-06-01", "sunset": "2026-12-01"}}'
    service = new_service("sqlite", clock=clock, versions=SECOND, api_versions=dates)
    for at, newest in (("2026-05-01", "v2"), ("2026-07-01", "v1")):
        clock.set(at)
        places = service.get("/", key=None, accept="application/json").json
        assert urlsplit(places["openapi"]).path == f"/{newest}/openapi.json"
        assert f"/{newest}/openapi.json" in _page(service, "/")


# --- problems ---


@pytest.mark.parametrize("kind", list(problems.kinds()), ids=lambda kind: kind.kind)
def test_every_kind_of_problem_has_its_page(service: Service, kind: type[problems.Problem]) -> None:
    """At the address that `type` gives: what it is called, its status, what it means, what to do, an example."""
    text = html.unescape(re.sub(r"</?code>", "`", _page(service, f"/problems/{kind.kind}")))
    assert f"<h1>{kind.title}</h1>" in text
    assert f"{status_of(kind)} " in text
    assert " ".join((kind.__doc__ or "").split()) in text
    assert "What to do" in text
    shown = service.get(f"/problems/{kind.kind}", key=None, accept="application/json").json
    assert shown["example"]["type"] == f"http://shop.example/problems/{kind.kind}"
    assert shown["example"]["status"] == shown["status"] == status_of(kind)
    assert shown["advice"]
    assert kind.kind in _page(service, "/problems")


def test_the_type_of_a_problem_leads_to_its_page(service: Service) -> None:
    """A problem met in earnest has a type that resolves."""
    met: list[Reply] = [
        service.get("/v1/users/nobody"),
        service.get("/v1/users?colour=red"),
        service.post("/v1/users", {}),
        service.get("/v1/users", key=None),
        service.call("DELETE", "/v1/users"),
    ]
    for reply in met:
        title = reply.json["title"]
        assert f"<h1>{title}</h1>" in _page(service, urlsplit(reply.json["type"]).path)


# --- events ---


def test_every_event_type_has_its_schema(service: Service) -> None:
    """The catalogue lists every type with a schema, which is also where `dataschema` points."""
    items = shop.get(service, "/event-types", key=None)["items"]
    assert {each["type"].removeprefix("dev.tradepost.") for each in items} >= {"order.placed", "webhook.ping"}
    for each in items:
        reply = service.get(urlsplit(each["dataschema"]).path, key=None)
        assert (reply.status, reply.headers["content-type"]) == (200, "application/schema+json")
        assert reply.json == each["schema"]
        assert each["description"]
        Draft202012Validator.check_schema(each["schema"])
        assert each["schema"]["$id"] == each["dataschema"]


def test_events_fit_the_schema_they_name(service: Service) -> None:
    """The data of an event that happened fits the schema at its own `dataschema`."""
    order = shop.an_order(service)
    service.call("PATCH", f"/v1/orders/{order['id']}", {"status": "CANCELLED"})
    service.call("DELETE", f"/v1/orders/{order['id']}")
    service.call("PATCH", f"/v1/users/{order['userId']}", {"status": "DEACTIVATED"})
    events: list[Any] = shop.walked(service, "/v1/events")
    assert {"placed", "cancelled", "deleted", "created", "deactivated"} <= {
        event["type"].rpartition(".")[2] for event in events
    }
    for event in events:
        schema = shop.get(service, urlsplit(event["dataschema"]).path, key=None)
        Draft202012Validator(schema).validate(event["data"])


def test_the_prefix_of_events_is_that_of_the_service(new_service: Callable[..., Service]) -> None:
    """Catalogue, schemas and documentation have the configured prefix."""
    service = new_service("sqlite", event_prefix="com.example.shop")
    shown = json.dumps(shop.get(service, "/event-types")) + _page(service, "/docs")
    assert "com.example.shop.order.placed" in shown
    assert "dev.tradepost" not in shown
    assert service.get("/event-types/com.example.shop.order.placed").status == 200
