"""The page at /graphql: what is served, and what it does in a real browser."""

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
from graphql import GraphQLError, build_schema, parse, validate
from graphql.utilities import strip_ignored_characters

from tests import shop
from tests.documents.browser import CONTROL, Tab, browser, program
from tests.flows.process import Process, serving
from tests.service import Service
from tradepost.graphql.schema import schema_text

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
HTML = "text/html; charset=utf-8"
SCHEMA = build_schema(schema_text())
IMPORT = re.compile(r'^import .* from "(.+)";$', re.MULTILINE)


@pytest.fixture(scope="module")
def service(new_service: Callable[..., Service]) -> Service:
    return new_service("sqlite")


class Seen(HTMLParser):
    """The tags of a page, and the text of its example."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._area = str(dict(attrs)["id"]) if tag == "textarea" else ""

    def handle_endtag(self, tag: str) -> None:
        self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.texts[self._area] = self.texts.get(self._area, "") + data


def _page(service: Service) -> str:
    reply = service.get("/graphql", key=None, accept=BROWSER)
    assert (reply.status, reply.headers["content-type"]) == (200, HTML)
    return reply.body.decode()


def _loaded(service: Service) -> dict[str, str]:
    """Everything the page loads, by address: what it names, and what that imports."""
    named = [
        attrs.get("src") or attrs.get("href")
        for tag, attrs in Seen(_page(service)).tags
        if tag in ("script", "link")
    ]
    waiting = [urljoin("/graphql", each) for each in named if each and not each.startswith("data:")]
    found: dict[str, str] = {}
    while waiting:
        address = waiting.pop()
        if address not in found:
            reply = service.get(address, key=None)
            assert reply.status == 200, address
            found[address] = reply.body.decode()
            waiting += [urljoin(address, each) for each in IMPORT.findall(found[address])]
    return found


# --- what is served ---


def test_who_prefers_a_page_gets_one(service: Service) -> None:
    """A browser that opens /graphql gets the page without a key; a program, and whoever asks a query, does not."""
    page = service.get("/graphql", key=None, accept=BROWSER)
    assert (page.status, page.headers["content-type"]) == (200, HTML)
    assert "Accept" in page.headers["vary"]
    unchanged = service.get("/graphql", key=None, accept=BROWSER, if_none_match=page.headers["etag"])
    assert unchanged.status == 304
    for path, accept in (
        ("/graphql", "*/*"),
        ("/graphql", "application/json"),
        ("/graphql?query={__typename}", BROWSER),
    ):
        assert service.get(path, accept=accept).headers["content-type"] != HTML


def test_production_has_no_page(new_service: Callable[..., Service]) -> None:
    """In production neither the page nor anything it is made of is there."""
    production = new_service("sqlite", env="production")
    loaded = _loaded(new_service("sqlite"))
    assert loaded
    assert production.get("/graphql", accept=BROWSER).headers["content-type"] != HTML
    for address in loaded:
        assert production.get(address).status == 404


def test_the_page_is_whole_and_needs_nothing_else(service: Service) -> None:
    """Each script and style it names, or they import, is here with its type; none of them names another place."""
    loaded = _loaded(service)
    assert {"/graphql/playground.js", "/graphql/playground.css"} < loaded.keys()
    for address, text in loaded.items():
        reply = service.get(address, key=None)
        kind = "text/css" if address.endswith(".css") else "text/javascript"
        assert reply.headers["content-type"] == f"{kind}; charset=utf-8"
        assert reply.headers["x-content-type-options"] == "nosniff"
        code = re.sub(r"(^|\s)//.*", "", text)  # but for comments
        assert "://" not in code
        assert not re.search(r"url\(|@import|innerHTML|\beval\b|new Function", code)
    assert {path for path in service.app.documents if path.startswith("/graphql/playground")} <= loaded.keys()


def test_the_page_is_confined(service: Service) -> None:
    """It runs its own scripts, applies its own style, talks to its own service, and is in no frame; nothing is inline."""
    policy = _policy(service, "shop.example:8443")
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self' ws://shop.example:8443 wss://shop.example:8443"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in " ".join(policy.values())
    for tag, attrs in Seen(_page(service)).tags:
        assert not {name for name in attrs if name == "style" or name.startswith("on")}
        assert tag != "script" or attrs["src"]
    for host in ("shop.example; script-src *", "shop.example *", "*"):
        assert _policy(service, host)["connect-src"] == "'self'"


def _policy(service: Service, host: str) -> dict[str, str]:
    reply = service.get("/graphql", key=None, accept=BROWSER, host=host)
    parts = reply.headers["content-security-policy"].split(";")
    assert len(parts) == len({part.split()[0] for part in parts})
    return dict(part.strip().split(" ", 1) for part in parts)


def test_the_example_fits_the_schema(service: Service) -> None:
    """What the page begins with is valid, asks and listens, and its variables are JSON."""
    texts = Seen(_page(service)).texts
    document = parse(texts["query"])
    assert validate(SCHEMA, document) == []
    assert {"query", "subscription"} <= {each.operation.value for each in document.definitions}  # type: ignore[attr-defined]
    assert json.loads(texts["variables"])


# --- in a real browser ---


@pytest.fixture(scope="module")
def running(new_database: Callable[[str], str]) -> Iterator[Process]:
    with serving(new_database("sqlite")) as process:
        yield process


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    found = program()
    if found is None:
        pytest.skip("no Chromium on this machine; TRADEPOST_TEST_CHROMIUM names one")
    with browser(found, tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture
def tab(chromium: Tab, running: Process) -> Tab:
    """The page as it is when somebody opens it for the first time and gives a key."""
    address = f"http://127.0.0.1:{running.port}/graphql"
    chromium.open(address)
    chromium.evaluate("localStorage.clear(), sessionStorage.clear()")
    chromium.evaluate("document.querySelector('#query').value = ''")  # or it would be kept as a draft
    chromium.open("about:blank")
    chromium.open(address)
    chromium.events.clear()
    chromium.write("#key", running.key)
    chromium.press("Enter")
    chromium.text("#schema .members")
    return chromium


def _order(running: Process) -> str:
    """The id of a pending order."""
    _, user = running.call("POST", "/v1/users", shop.user_body())
    _, product = running.call("POST", "/v1/products", shop.product_body())
    _, order = running.call("POST", "/v1/orders", shop.order_body(user, (product, 1)))
    return str(order["id"])


def test_a_query_is_written_and_run(tab: Tab, running: Process) -> None:
    """What is written runs by Ctrl+Enter, and its answer is shown with status, time and cost."""
    order = _order(running)
    tab.write("#query", f'{{ order(id: "{order}") {{ id status }} }}')
    tab.press("Enter", CONTROL)
    state = tab.text(".card.well .state")
    assert re.fullmatch(r"200 OK · \d+ ms · cost \d+, depth 2, SQL statements \d+", state)
    shown = json.loads(tab.text(".card .json"))
    assert shown["data"] == {"order": {"id": order, "status": "PENDING"}}
    assert running.key not in tab.evaluate("location.href + JSON.stringify(localStorage)")


def test_errors_are_told_with_their_code(tab: Tab) -> None:
    """An error is shown with its code, and leads to its place in the document."""
    tab.write("#query", "{\n  orders { nodes { idd } }\n}")
    assert tab.text("#query-strip") == "Order has no field idd; id?"
    tab.click("#run")
    assert tab.text(".card.wrong .error").startswith("GRAPHQL_VALIDATION_FAILED")
    tab.click(".card .error button")
    place = "document.querySelector('#query')"
    assert tab.evaluate(f"{place}.value.slice({place}.selectionStart, {place}.selectionEnd)") == "idd"


def test_a_subscription_shows_what_is_pushed(tab: Tab, running: Process) -> None:
    """A subscription stays while other operations run, shows each push once, and ends when it is stopped."""
    tab.write("#variables", json.dumps({"orderId": _order(running)}))
    tab.evaluate("document.querySelector('#operation').value = 'Status'")
    tab.click("#run")
    tab.until("document.querySelector('.card .state')?.innerText === 'listening …'")
    tab.evaluate("document.querySelector('#operation').value = 'Fulfill'")
    tab.click("#run")
    tab.text(".card.well .state")
    tab.until("document.querySelector('.card.running .state').innerText === 'listening … 1 push'")
    assert json.loads(tab.text(".card.running .json"))["data"]["orderStatusChanged"]["status"] == "FULFILLED"
    tab.click(".card.running .stop")
    tab.until(
        "[...document.querySelectorAll('.state')].some((each) => each.innerText === 'stopped · 1 push')"
    )


def test_the_schema_completes_and_inserts(tab: Tab) -> None:
    """What can stand at the cursor is offered; a field of the schema goes where one of its type is selected."""
    tab.write("#query", "{ us")
    tab.until("!document.querySelector('#completions').hidden")
    assert tab.evaluate("[...document.querySelectorAll('#completions .what')].map((e) => e.innerText)") == [
        "user",
        "users",
    ]
    tab.press("ArrowDown")
    tab.press("Tab")
    assert tab.evaluate("document.querySelector('#query').value") == "{ users"
    tab.write("#query", "{ __typename }")
    tab.click("[aria-label='Insert Query.products into the document']")
    assert (
        tab.evaluate("document.querySelector('#query').value")
        == "{\n  __typename\n  products {\n    id\n  }\n}\n"
    )


def test_the_page_keeps_to_itself(tab: Tab, running: Process) -> None:
    """Nothing is asked for elsewhere, the policy is never broken, and no exception is left uncaught."""
    tab.click("#run")
    tab.text(".card.well .state")
    tab.write("#variables", json.dumps({"orderId": _order(running)}))
    tab.evaluate("document.querySelector('#operation').value = 'Status'")
    tab.click("#run")
    tab.until("document.querySelector('.card.running .state')?.innerText === 'listening …'")
    hosts = {urlsplit(address).netloc for address in tab.requested() if not address.startswith("data:")}
    assert hosts == {f"127.0.0.1:{running.port}"}
    assert any(address.startswith("ws://") for address in tab.requested())
    assert tab.complaints() == []


SOUND = (
    "{ __typename }",
    "query { users(first: 3, after: null) { edges { cursor node { id } } pageInfo { hasNextPage } } }",
    'query A($f: ProductFilter = {ids: ["a"], status: ACTIVE}) { products(filter: $f) { ...P } } fragment P on Product { price }',
    "query A($i: ID!, $s: Boolean!) { a: user(id: $i) @include(if: $s) { ... { name } ... on User @skip(if: $s) { email } } }",
    'mutation { createOrder(input: {userId: "u", lineItems: [{productId: "p", quantity: 2}]}) { id } }',
    "subscription A($o: ID!) { orderStatusChanged(orderId: $o) { status } } query B { users { totalCount } }",
    '{ order(id: 7) { id } products(filter: {search: """a "quoted" name""", priceMin: 1, inStock: true}) { sku } }',
    '{ __schema { types { name fields { name } } } __type(name: "User") { kind } }',
)
FAULTY = (
    "{",
    "{ users { nodes { id } }",
    "{ users ) }",
    "{ a: }",
    '{ order(id: "x) { id } }',
    "query A(first: Int) { users { totalCount } }",
    "nothing { id }",
    "{ usres { totalCount } }",
    "{ users }",
    "{ users { totalCount { id } } }",
    "{ order { id } }",
    "{ order(id: null) { id } }",
    "{ __type { name } }",
    '{ order(ident: "x", id: "x") { id } }',
    '{ users(first: "x") { totalCount } }',
    "{ products(filter: {status: GONE}) { id } }",
    '{ products(filter: {colour: "red"}) { id } }',
    'mutation { createOrder(input: {userId: "u"}) { id } }',
    "{ users { ...F } }",
    "{ users { totalCount } } fragment F on User { id }",
    "{ users { ... on Order { id } } }",
    "{ users { ... on ProductFilter { id } } }",
    "{ users(first: $n) { totalCount } }",
    "query A($n: Int) { users { totalCount } }",
    "query A($n: Order) { users(first: $n) { totalCount } }",
    "{ users @nothing { totalCount } }",
    "{ users @include { totalCount } }",
    "{ users { totalCount } } query B { users { totalCount } }",
    "query B { users { totalCount } } query B { users { totalCount } }",
)


def _judge(document: str) -> bool:
    """Whether the service would run it."""
    try:
        return validate(SCHEMA, parse(document)) == []
    except GraphQLError:
        return False


def test_the_page_complains_where_the_service_would(tab: Tab) -> None:
    """A document the service would refuse is complained of while it is written, a sound one is not."""
    found = tab.evaluate(f"""(async () => {{
      const {{ read }} = await import("/graphql/reader.js");
      const {{ INTROSPECTION, Schema }} = await import("/graphql/schema.js");
      const {{ ask }} = await import("/graphql/transport.js");
      const {{ body }} = await ask("/graphql", document.querySelector("#key").value, {{ query: INTROSPECTION }});
      const schema = new Schema(body.data.__schema);
      return {json.dumps([*SOUND, *FAULTY])}.map((each) => read(each, schema).complaints.map((one) => one.message));
    }})()""")
    for document, complaints in zip([*SOUND, *FAULTY], found, strict=True):
        assert (complaints == []) == _judge(document), (document, complaints)
    assert [_judge(document) for document in (*SOUND, *FAULTY)] == [True] * len(SOUND) + [False] * len(FAULTY)


def test_laying_out_changes_white_space_alone(tab: Tab) -> None:
    """A document laid out says what it said, comments included; laid out again, it stays as it is."""
    commented = "# above\n{ users # beside\n # below\n { totalCount } } # behind\n# end"
    documents = [*SOUND, commented]
    found = tab.evaluate(f"""import("/graphql/pretty.js").then(({{ pretty }}) =>
      {json.dumps(documents)}.map((each) => [pretty(each), pretty(pretty(each))]))""")
    for document, (once, twice) in zip(documents, found, strict=True):
        assert strip_ignored_characters(once) == strip_ignored_characters(document)
        assert once == twice
        assert once.count("#") == document.count("#")
