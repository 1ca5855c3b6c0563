"""A member with the mark PATCHED is set by PATCH alone, and every interface says so."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import pytest
from msgspec import Meta

from tests import shop
from tests.graphql.asking import ask, got
from tests.laws.test_new_resource import migration
from tests.service import Service
from tradepost import catalogue
from tradepost.actions.standard import StandardActions
from tradepost.domain.record import FILTERABLE, PATCHED, Dated
from tradepost.domain.text import Name
from tradepost.graphql.schema import BoundSchema, Drift, schema_text
from tradepost.resource import Resource


class Parcel(Dated, kw_only=True):
    """A parcel, which is packed before anybody can say how it travels."""

    kind: ClassVar[str] = "parcel"
    plural: ClassVar[str] = "parcels"

    content: Annotated[Name, Meta(description="What is in it.")]
    state: Annotated[Literal["PACKED", "SENT"], Meta(description="How far it is."), PATCHED, FILTERABLE] = (
        "PACKED"
    )
    carrier: Annotated[str | None, Meta(description="Who carries it.", max_length=20), PATCHED] = None


WITH_PARCELS = (*catalogue.RESOURCES, Resource(Parcel, StandardActions(Parcel, emits=True), "orders"))
SCHEMA = (
    schema_text()
    + """
extend type Query { parcel(id: ID!): Parcel }
extend type Mutation {
  createParcel(input: CreateParcelInput!): Parcel!
  updateParcel(id: ID!, input: UpdateParcelInput!, ifMatch: String): Parcel!
}
type Parcel { id: ID! content: String! state: ParcelState! carrier: String }
enum ParcelState { PACKED SENT }
input CreateParcelInput { content: String! }
input UpdateParcelInput { content: String state: ParcelState carrier: String }
"""
)
NEW = {"state": "PACKED", "carrier": None}
SENT = {"state": "SENT", "carrier": "Royal Mail"}


@pytest.fixture(scope="module")
def parcels(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service with parcels."""
    return new_service(engine, resources=WITH_PARCELS, migration=migration(engine, Parcel), schema=SCHEMA)


def of(parcel: Any) -> dict[str, Any]:
    """The members of a parcel that only PATCH takes."""
    return {name: parcel[name] for name in NEW}


def test_a_post_ignores_it(parcels: Service) -> None:
    """A new item has the default, whatever the body says, in whatever type."""
    for members in (SENT, {"state": 7, "carrier": []}, {}):
        assert of(parcels.made("/v1/parcels", {"content": "Lantern", **members})) == NEW


def test_a_patch_sets_it_and_a_put_keeps_it(parcels: Service) -> None:
    """PATCH sets it, and to its default by null; PUT leaves it as it is, and its ETag with it."""
    path = f"/v1/parcels/{parcels.made('/v1/parcels', {'content': 'Lantern'})['id']}"
    assert of(parcels.call("PATCH", path, SENT).json) == SENT
    tag = parcels.get(path).headers["etag"]
    for members in (NEW, {"state": 7}, {}):
        assert parcels.call("PUT", path, {"content": "Lantern", **members}).headers["etag"] == tag
    assert of(parcels.call("PUT", path, {"content": "Lamp"}).json) == SENT
    assert [each["content"] for each in shop.walked(parcels, "/v1/parcels?state=SENT")] == ["Lamp"]
    assert of(parcels.call("PATCH", path, {"content": "Bed"}).json) == SENT
    assert of(parcels.call("PATCH", path, {"state": None, "carrier": None}).json) == NEW
    refused = parcels.call("PATCH", path, {"state": "LOST", "carrier": "x" * 21})
    assert {each["field"]: each["message"] for each in refused.json["errors"]} == {
        "state": "must be one of PACKED, SENT",
        "carrier": "must be a string of at most 20 characters or null",
    }


def test_the_openapi_document_says_where_it_is_ignored(parcels: Service) -> None:
    """It is writable in the schema of PATCH, read-only in that of POST and PUT, and no read-only member of the item."""
    schemas = shop.get(parcels, "/v1/openapi.json")["components"]["schemas"]
    item, body, patch = (schemas[name]["properties"] for name in ("Parcel", "ParcelInput", "ParcelPatch"))
    assert patch["state"] == {
        "type": ["string", "null"],
        "enum": ["PACKED", "SENT", None],
        "description": "How far it is.",
    }
    assert patch["carrier"] == {
        "type": ["string", "null"],
        "maxLength": 20,
        "description": "Who carries it.",
    }
    for name in NEW:
        assert "readOnly" not in item[name]
        assert body[name] == {"description": f"{item[name]['description']} Ignored here.", "readOnly": True}


def test_graphql_sets_it_by_an_update_alone(parcels: Service) -> None:
    """A mutation that creates has no such member, one that updates sets it."""
    create = "mutation($input: CreateParcelInput!) { createParcel(input: $input) { id state carrier } }"
    update = """mutation($id: ID!, $input: UpdateParcelInput!) {
      updateParcel(id: $id, input: $input) { state carrier } }"""
    made = got(parcels, create, {"input": {"content": "Lantern"}})["createParcel"]
    assert of(made) == NEW
    refused = ask(parcels, create, {"input": {"content": "Lantern", "state": "SENT"}})
    assert refused.codes == ["BAD_USER_INPUT"]
    for members, after in (
        (SENT, SENT),
        ({"content": "Bed"}, SENT),
        ({"carrier": None}, SENT | {"carrier": None}),
    ):
        changed = got(parcels, update, {"id": made["id"], "input": members})
        assert of(changed["updateParcel"]) == after


@pytest.mark.parametrize(
    ("declared", "place"),
    [
        ("CreateParcelInput { content: String! state: ParcelState }", "CreateParcelInput.state"),
        ("UpdateParcelInput { content: String state: ParcelState }", "UpdateParcelInput lacks carrier"),
    ],
)
def test_a_schema_that_says_otherwise_is_refused(declared: str, place: str) -> None:
    """The input of a create may not have it, that of an update has to."""
    name = declared.partition(" ")[0]
    before = next(line for line in SCHEMA.splitlines() if line.startswith(f"input {name}"))
    with pytest.raises(Drift, match=place):
        BoundSchema(SCHEMA.replace(before, f"input {declared}"), WITH_PARCELS)
