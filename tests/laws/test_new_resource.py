"""A plain resource is its record, a line in the catalogue and a migration: all else follows by existing."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import ClauseElement
from sqlalchemy.schema import CreateIndex, CreateTable

from tests import shop
from tests.graphql.asking import ask, got
from tests.service import Service
from tradepost import catalogue
from tradepost.actions.standard import StandardActions
from tradepost.domain.product import Product
from tradepost.domain.record import FILTERABLE, INSTANT, JSON, SORTABLE, UNIQUE, BelongsTo, Dated, Record
from tradepost.domain.text import Name
from tradepost.domain.user import User
from tradepost.graphql.schema import schema_text
from tradepost.resource import Resource
from tradepost.storage.statement import POSTGRES, SQLITE
from tradepost.storage.tables import table


class Review(Dated, kw_only=True):
    """What somebody thinks of a product: the first of the files, its record."""

    kind: ClassVar[str] = "review"
    plural: ClassVar[str] = "reviews"

    product_id: Annotated[
        str, Meta(description="Of what."), FILTERABLE, BelongsTo(Product, reverse="reviews")
    ]
    title: Annotated[Name, Meta(description="In short."), UNIQUE, SORTABLE, FILTERABLE]
    stars: Annotated[int, Meta(ge=1, le=5, description="How many of five."), SORTABLE, FILTERABLE] = 3


# The second file, the catalogue: one line.
WITH_REVIEWS = (
    *catalogue.RESOURCES,
    Resource(Review, StandardActions(Review, emits=True), "products", user_keys="read"),
)


def migration(engine: str, record: type[Record] = Review) -> list[str]:
    """The third file, the migration: here written by the table itself."""
    made = table(record)
    dialect = POSTGRES if engine == "postgresql" else SQLITE
    statements: list[ClauseElement] = [CreateTable(made), *map(CreateIndex, made.indexes)]
    return [str(each.compile(dialect=dialect)) for each in statements]


# The fourth, the schema: here what is added to it.
SCHEMA = (
    schema_text()
    + """
extend type Query { review(id: ID!): Review reviews(first: Int, after: String): ReviewConnection }
extend type Mutation {
  createReview(input: CreateReviewInput!): Review!
  updateReview(id: ID!, input: UpdateReviewInput!, ifMatch: String): Review!
  deleteReview(id: ID!, ifMatch: String): Review!
}
extend type Product { reviews(first: Int, after: String): ReviewConnection! }
type Review { id: ID! product: Product productId: ID! title: String! stars: Int! etag: String! createdAt: DateTime! }
type ReviewConnection { edges: [ReviewEdge!]! nodes: [Review!]! pageInfo: PageInfo! totalCount: Int! }
type ReviewEdge { cursor: String! node: Review! }
input CreateReviewInput { productId: ID! title: String! stars: Int }
input UpdateReviewInput { productId: ID title: String stars: Int }
"""
)


def test_a_plain_resource_is_there_by_being_declared(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """Every method, paging, filters, ETags, problems and events work for a record that was only declared."""
    service = new_service(engine, resources=WITH_REVIEWS, migration=migration(engine))
    product = service.made("/v1/products", {"sku": "r", "name": "Lantern", "price": 1, "currency": "GBP"})
    made = [
        service.made("/v1/reviews", {"productId": product["id"], "title": f"Review {n}", "stars": n % 5 + 1})
        for n in range(7)
    ]
    assert service.post("/v1/reviews", {"productId": "x", "title": ""}).status == 422
    assert service.post("/v1/reviews", {"productId": product["id"], "title": "Review 1"}).status == 409
    page = service.get("/v1/reviews?sort=-stars&limit=4").json
    rest = service.get(f"/v1/reviews?sort=-stars&limit=4&cursor={page['next']}").json
    shown = [each["id"] for each in page["items"] + rest["items"]]
    assert shown == [
        each["id"] for each in sorted(made, key=lambda each: (each["stars"], each["id"]), reverse=True)
    ]
    assert len(service.get("/v1/reviews?stars=1").json["items"]) == 2
    one = f"/v1/reviews/{made[0]['id']}"
    tag = service.get(one).headers["etag"]
    assert service.get(one, if_none_match=tag).status == 304
    changed = service.call("PATCH", one, {"stars": 5}, if_match=tag)
    assert (changed.status, changed.json["stars"]) == (200, 5)
    assert service.call("PUT", one, changed.json | {"title": "Anew"}, if_match=tag).status == 412
    assert service.call("DELETE", one).status == 204
    assert service.get(one).status == 404
    told = [
        event["type"] for event in service.get(f"/v1/events?subject=reviews/{made[0]['id']}").json["items"]
    ]
    assert told == [f"dev.tradepost.review.{verb}" for verb in ("created", "updated", "deleted")]


CREATE = (
    "mutation($input: CreateReviewInput!) { createReview(input: $input) { id title stars product { name } } }"
)
UPDATE = """mutation($id: ID!, $input: UpdateReviewInput!, $tag: String) {
  updateReview(id: $id, input: $input, ifMatch: $tag) { stars etag } }"""
DELETE = (
    "mutation($id: ID!, $tag: String) { deleteReview(id: $id, ifMatch: $tag) { id title product { name } } }"
)


def test_its_types_are_there_by_being_declared(engine: str, new_service: Callable[..., Service]) -> None:
    """Queries, connections, relations in both directions and mutations work for what is in the schema file too."""
    service = new_service(engine, resources=WITH_REVIEWS, migration=migration(engine), schema=SCHEMA)
    products = [shop.a_product(service, name=f"Lamp {n}") for n in range(3)]
    made = [
        got(
            service,
            CREATE,
            {"input": {"productId": products[n % 2]["id"], "title": f"T{n}", "stars": n % 5 + 1}},
        )
        for n in range(7)
    ]
    ids = [each["createReview"]["id"] for each in made]
    assert made[3]["createReview"] == {"id": ids[3], "title": "T3", "stars": 4, "product": {"name": "Lamp 1"}}
    assert service.get(f"/v1/reviews/{ids[3]}").json["title"] == "T3"

    one = "query($id: ID!) { review(id: $id) { title productId etag createdAt product { reviews { totalCount } } } }"
    review = got(service, one, {"id": ids[0]})["review"]
    rest = service.get(f"/v1/reviews/{ids[0]}").json
    assert (review["productId"], review["createdAt"]) == (products[0]["id"], rest["createdAt"])
    assert review["product"] == {"reviews": {"totalCount": 4}}
    assert got(service, one, {"id": "nope"}) == {"review": None}

    page = "query($after: String) { reviews(first: 4, after: $after) { totalCount nodes { id } pageInfo { endCursor hasNextPage } } }"
    first = got(service, page)["reviews"]
    second = got(service, page, {"after": first["pageInfo"]["endCursor"]})["reviews"]
    assert [node["id"] for node in first["nodes"] + second["nodes"]] == ids
    assert (first["totalCount"], first["pageInfo"]["hasNextPage"], second["pageInfo"]["hasNextPage"]) == (
        7,
        True,
        False,
    )

    level = ask(service, "{ products { name reviews(first: 2) { edges { cursor node { title } } } } }")
    assert [
        [edge["node"]["title"] for edge in each["reviews"]["edges"]] for each in level.sound["products"]
    ] == [
        ["T0", "T2"],
        ["T1", "T3"],
        [],
    ]
    assert level.cost["statements"] == 2

    bad = ask(service, CREATE, {"input": {"productId": "x", "title": "", "stars": 9}})
    assert (bad.codes, sorted(bad.fields)) == (["BAD_USER_INPUT"], ["productId", "stars", "title"])
    taken = ask(service, CREATE, {"input": {"productId": products[0]["id"], "title": "T1"}})
    assert (taken.codes, taken.fields) == (["CONFLICT"], ["title"])
    changed = got(service, UPDATE, {"id": ids[0], "input": {"stars": 5}, "tag": review["etag"]})[
        "updateReview"
    ]
    assert changed["stars"] == 5
    assert ask(service, DELETE, {"id": ids[0], "tag": review["etag"]}).codes == ["CONFLICT"]
    assert got(service, UPDATE, {"id": ids[0], "input": {"stars": None}})["updateReview"]["stars"] == 3
    gone = got(service, DELETE, {"id": ids[0]}, idempotency_key="once")
    assert gone == {"deleteReview": {"id": ids[0], "title": "T0", "product": {"name": "Lamp 0"}}}
    assert ask(service, DELETE, {"id": ids[0]}).codes == ["NOT_FOUND"]
    assert got(service, DELETE, {"id": ids[0]}, idempotency_key="once") == gone
    assert service.get(f"/v1/reviews/{ids[0]}").status == 404
    verbs = ["created", "updated", "updated", "deleted"]
    assert shop.told(service, f"reviews/{ids[0]}") == [f"review.{verb}" for verb in verbs]

    reader = service.new_key("products:read")
    assert got(service, "{ reviews { totalCount } }", key=reader) == {"reviews": {"totalCount": 6}}
    assert ask(service, DELETE, {"id": ids[1]}, key=reader).codes == ["FORBIDDEN"]
    assert ask(service, "{ reviews { totalCount } }", key=service.new_key("users:read")).codes == [
        "FORBIDDEN"
    ]
    users = service.new_key("admin", user=shop.a_user(service)["id"])
    assert got(service, "{ reviews { totalCount } }", key=users) == {"reviews": {"totalCount": 6}}
    assert ask(service, DELETE, {"id": ids[1]}, key=users).codes == ["FORBIDDEN"]


class Sale(Dated, kw_only=True):
    """A sale: a list, and an instant, as members of a record."""

    kind: ClassVar[str] = "sale"
    plural: ClassVar[str] = "sales"

    labels: Annotated[list[Name], Meta(description="What it is of."), JSON] = msgspec.field(
        default_factory=lambda: ["all"]
    )
    opens_at: Annotated[str | None, Meta(description="When it opens.")] = None
    closes: Annotated[str | None, Meta(description="When it closes."), INSTANT] = None


def test_lists_and_instants_are_kept_by_being_declared(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """A list is shown as it was given, an instant in the service's own form; changes, defaults and ETags know both."""
    sales = Resource(Sale, StandardActions(Sale), "products")
    service = new_service(engine, resources=(*catalogue.RESOURCES, sales), migration=migration(engine, Sale))
    given = {"labels": ["lamps", "é"], "opensAt": "2026-11-27", "closes": "2026-11-28T02:00:00+02:00"}
    made = service.made("/v1/sales", given)
    opens, closes = "2026-11-27T00:00:00.000Z", "2026-11-28T00:00:00.000Z"
    assert (made["labels"], made["opensAt"], made["closes"]) == (["lamps", "é"], opens, closes)
    one = f"/v1/sales/{made['id']}"
    tag = service.get(one).headers["etag"]
    for method, body in (("PUT", made), ("PUT", given), ("PATCH", {"closes": "2026-11-28"})):
        assert service.call(method, one, body).headers["etag"] == tag
    assert service.call("PATCH", one, {"labels": ["beds"]}).json == shop.get(service, one)
    changed = service.call("PATCH", one, {"labels": None, "opensAt": None}).json
    assert (changed["labels"], changed["opensAt"], changed["closes"]) == (["all"], None, closes)
    assert service.made("/v1/sales", {})["labels"] == ["all"]
    for member, bad in (("opensAt", "soon"), ("closes", ""), ("labels", [""]), ("labels", "all")):
        for method, path in (("POST", "/v1/sales"), ("PATCH", one)):
            reply = service.call(method, path, {member: bad})
            found = {field.partition("[")[0] for field in shop.fields_of(reply.json)}
            assert (reply.status, found) == (422, {member}), (method, member, bad)


class Wish(Dated, kw_only=True):
    """A product that a user would like to have: nobody else's business."""

    kind: ClassVar[str] = "wish"
    plural: ClassVar[str] = "wishes"

    user_id: Annotated[str, Meta(description="Whose."), FILTERABLE, BelongsTo(User, reverse="wishes")]
    product_id: Annotated[str, Meta(description="Of what."), FILTERABLE, BelongsTo(Product, reverse="wishes")]


WISHES = (
    schema_text()
    + """
extend type Query { wish(id: ID!): Wish wishes(first: Int, after: String): WishConnection }
extend type Product { wishes(first: Int, after: String): WishConnection! }
type Wish { id: ID! user: User product: Product }
type WishConnection { edges: [WishEdge!]! nodes: [Wish!]! pageInfo: PageInfo! totalCount: Int! }
type WishEdge { cursor: String! node: Wish! }
"""
)
OF_PRODUCT = """query($id: ID!, $first: Int, $after: String) { product(id: $id) { wishes(first: $first, after: $after) {
  totalCount nodes { id user { id } } pageInfo { hasNextPage endCursor }
} } }"""


def wished(
    engine: str, new_service: Callable[..., Service], user_keys: Literal["own", "read"]
) -> tuple[Service, Any, list[Any], list[str]]:
    """A service with wishes, a product, two users, and the ids of six wishes for it, of each user in turn."""
    resource = Resource(Wish, StandardActions(Wish), "orders", user_keys=user_keys)
    tables = migration(engine, Wish)
    service = new_service(engine, resources=(*catalogue.RESOURCES, resource), migration=tables, schema=WISHES)
    product, users = shop.a_product(service), [shop.a_user(service) for _ in range(2)]
    bodies = [{"userId": users[n % 2]["id"], "productId": product["id"]} for n in range(6)]
    return service, product, users, [service.made("/v1/wishes", body)["id"] for body in bodies]


def test_what_is_a_users_own_stays_so_on_every_path(engine: str, new_service: Callable[..., Service]) -> None:
    """A key that acts for a user finds no one else's, below what all may read either, and pages of its own."""
    service, product, users, wishes = wished(engine, new_service, "own")
    key = service.new_key("admin", user=users[0]["id"])
    query = "query($id: ID!) { wishes { totalCount nodes { id } } wish(id: $id) { id } }"
    own = [{"id": each} for each in wishes[::2]]
    found = got(service, query, {"id": wishes[1]}, key=key)
    assert found == {"wishes": {"totalCount": 3, "nodes": own}, "wish": None}
    seen, after = [], None
    for number in range(3):
        asked = {"id": product["id"], "first": 1, "after": after}
        page = got(service, OF_PRODUCT, asked, key=key)["product"]["wishes"]
        seen += page["nodes"]
        assert page["totalCount"] == 3
        assert page["pageInfo"]["hasNextPage"] is (number < 2)
        after = page["pageInfo"]["endCursor"]
    assert seen == [each | {"user": {"id": users[0]["id"]}} for each in own]
    assert got(service, OF_PRODUCT, {"id": product["id"]})["product"]["wishes"]["totalCount"] == 6


def test_others_are_not_seen_through_what_all_may_read(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """Of what anyone may read a key that acts for a user sees all, and behind it no user but its own."""
    service, product, users, wishes = wished(engine, new_service, "read")
    key = service.new_key("admin", user=users[0]["id"])
    page = got(service, OF_PRODUCT, {"id": product["id"]}, key=key)["product"]["wishes"]
    assert page["totalCount"] == 6
    own = {"id": users[0]["id"]}
    assert page["nodes"] == [{"id": each, "user": None if n % 2 else own} for n, each in enumerate(wishes)]
