"""A plain resource is its record, a line in the catalogue and a migration: all else follows by existing."""

from collections.abc import Callable
from typing import Annotated, ClassVar

from msgspec import Meta
from sqlalchemy import ClauseElement
from sqlalchemy.schema import CreateIndex, CreateTable

from tests.service import Service
from tradepost import catalogue
from tradepost.actions.plain import Plain
from tradepost.domain.product import Product
from tradepost.domain.record import FILTERABLE, SORTABLE, UNIQUE, BelongsTo, Dated
from tradepost.domain.text import Name
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
    Resource(Review, Plain(Review, emits=True), "products", user_keys="read"),
)


def migration(engine: str) -> list[str]:
    """The third file, the migration: here written by the table itself."""
    made = table(Review)
    dialect = POSTGRES if engine == "postgresql" else SQLITE
    statements: list[ClauseElement] = [CreateTable(made), *map(CreateIndex, made.indexes)]
    return [str(each.compile(dialect=dialect)) for each in statements]


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
