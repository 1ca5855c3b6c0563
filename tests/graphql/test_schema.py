"""The schema: the committed file is what is served, says all it has to, and cannot drift from the code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLObjectType,
    build_client_schema,
    build_schema,
    get_introspection_query,
    print_schema,
)

from tests.graphql.asking import PATH, got
from tests.service import Service
from tradepost import catalogue
from tradepost.assembly import assemble
from tradepost.cli.app import app
from tradepost.graphql.schema import BoundSchema, Drift, schema_text
from tradepost.settings import BadSetting, load

FILE = Path(__file__).parents[2] / "contract" / "schema.graphql"
TEXT = FILE.read_text("utf-8")
SCHEMA = build_schema(TEXT)

# Specification 2.1 and 4.2, and CONTRACT 6: place → how it is declared.
SPECIFIED = {
    "User.id": "ID!",
    "User.name": "String!",
    "User.email": "String!",
    "User.orders(first: Int, after: String)": "OrderConnection!",
    "Order.id": "ID!",
    "Order.total": "Float!",
    "Order.status": "OrderStatus!",
    "Order.lineItems": "[LineItem!]!",
    "Query.user(id: ID!)": "User",
    "Query.products": "[Product!]!",
    "Mutation.createOrder(input: CreateOrderInput!)": "Order!",
    "Subscription.orderStatusChanged(orderId: ID!)": "Order!",
    "Query.order(id: ID!)": "Order",
    "Query.product(id: ID!)": "Product",
    "Order.user": "User",
    "OrderConnection.edges": "[OrderEdge!]!",
    "OrderConnection.nodes": "[Order!]!",
    "OrderConnection.pageInfo": "PageInfo!",
    "OrderConnection.totalCount": "Int!",
    "OrderEdge.cursor": "String!",
    "OrderEdge.node": "Order!",
    "PageInfo.hasNextPage": "Boolean!",
    "PageInfo.hasPreviousPage": "Boolean!",
    "PageInfo.startCursor": "String",
    "PageInfo.endCursor": "String",
    "LineItem.id": "ID!",
    "LineItem.quantity": "Int!",
    "LineItem.unitPrice": "Float!",
    "LineItem.total": "Float!",
    "LineItem.sku": "String!",
    "LineItem.name": "String!",
    "LineItem.product": "Product",
    "Product.id": "ID!",
    "Product.sku": "String!",
    "Product.name": "String!",
    "Product.description": "String",
    "Product.price": "Float!",
    "Product.currency": "String!",
    "Product.stock": "Int",
    "Product.status": "ProductStatus!",
    "Mutation.createUser(input: CreateUserInput!)": "User!",
    "Mutation.updateUser(id: ID!, input: UpdateUserInput!, ifMatch: String)": "User!",
    "Mutation.deactivateUser(id: ID!)": "User!",
    "Mutation.createProduct(input: CreateProductInput!)": "Product!",
    "Mutation.updateProduct(id: ID!, input: UpdateProductInput!, ifMatch: String)": "Product!",
    "Mutation.fulfillOrder(id: ID!, ifMatch: String)": "Order!",
    "Mutation.cancelOrder(id: ID!, ifMatch: String)": "Order!",
}
FILTER = {
    "ids": "[ID!]",
    "sku": "String",
    "status": "ProductStatus",
    "currency": "String",
    "search": "String",
    "priceMin": "Float",
    "priceMax": "Float",
    "inStock": "Boolean",
}


def field_of(schema: Any, place: str) -> Any:
    kind, _, name = place.partition("(")[0].partition(".")
    return schema.type_map[kind].fields[name]


def inputs_of(schema: Any, name: str) -> dict[str, str]:
    return {each: str(field.type) for each, field in schema.type_map[name].fields.items()}


# --- what it says ---


@pytest.mark.parametrize(("place", "declared"), SPECIFIED.items())
def test_what_is_specified_is_declared(place: str, declared: str) -> None:
    """Every field is there, of the type the specification gives it; where it gives arguments, with just those."""
    field = field_of(SCHEMA, place)
    assert str(field.type) == declared
    if "(" in place:
        arguments = ", ".join(f"{name}: {each.type}" for name, each in field.args.items())
        assert place.endswith(f"({arguments})")


def test_inputs_are_as_specified() -> None:
    """The filter, the order and its lines, and the states of an order are the specification's and contract's."""
    assert inputs_of(SCHEMA, "ProductFilter") == FILTER
    assert inputs_of(SCHEMA, "CreateOrderInput") == {
        "userId": "ID!",
        "lineItems": "[LineItemInput!]!",
        "shippingAddressId": "ID",
    }
    assert inputs_of(SCHEMA, "LineItemInput") == {"productId": "ID!", "quantity": "Int!"}
    assert list(SCHEMA.type_map["OrderStatus"].values) == ["PENDING", "FULFILLED", "CANCELLED"]  # type: ignore[attr-defined]
    products = field_of(SCHEMA, "Query.products")
    assert {name: str(each.type) for name, each in products.args.items()} == {
        "filter": "ProductFilter",
        "first": "Int",
        "after": "ID",
    }


def _described() -> Iterator[tuple[str, Any]]:
    yield "schema", SCHEMA
    for name, kind in SCHEMA.type_map.items():
        if name.startswith("__") or name in ("ID", "String", "Int", "Float", "Boolean"):
            continue
        yield name, kind
        if isinstance(kind, GraphQLObjectType | GraphQLInputObjectType):
            for field_name, field in kind.fields.items():
                yield f"{name}.{field_name}", field
                for argument, each in getattr(field, "args", {}).items():
                    yield f"{name}.{field_name}({argument})", each
        if isinstance(kind, GraphQLEnumType):
            for value, member in kind.values.items():
                yield f"{name}.{value}", member


def test_everything_is_described() -> None:
    """Every type, field, argument, member and value says what it is, in a sentence that ends."""
    said = dict(_described())
    assert len(said) > 150
    undescribed = [
        place for place, what in said.items() if not (what.description or "").strip().endswith(".")
    ]
    assert undescribed == []


def test_a_field_says_which_scope_it_needs() -> None:
    """Every root field names its scope, and so does every field that leads to what another scope is for."""
    roots = ("Query", "Mutation", "Subscription")
    places = [f"{root}.{name}" for root in roots for name in SCHEMA.type_map[root].fields]  # type: ignore[attr-defined]
    for place in (*places, "User.orders", "Order.user", "LineItem.product"):
        assert "Needs `" in field_of(SCHEMA, place).description, place


# --- what is served ---


def test_the_committed_schema_is_the_one_served(service: Service) -> None:
    """/graphql/schema is the file, byte by byte, with an ETag; HEAD and OPTIONS as for any document."""
    reply = service.get(f"{PATH}/schema", key=None)
    assert (reply.status, reply.body) == (200, FILE.read_bytes())
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert service.get(f"{PATH}/schema", key=None, if_none_match=reply.headers["etag"]).status == 304
    assert service.call("HEAD", f"{PATH}/schema", key=None).status == 200
    assert service.call("POST", f"{PATH}/schema", {}, key=None).status == 405


@pytest.mark.parametrize(
    "abstract",
    ["interface Named { name: String! }", "union Either = User | Product"],
)
def test_no_type_is_abstract(abstract: str) -> None:
    """An interface or a union in the file stops the start: nothing could say of which type a row is."""
    with pytest.raises(Drift, match=f"{abstract.split()[1]} is an interface or a union"):
        BoundSchema(f"{schema_text()} {abstract}", catalogue.RESOURCES)


def test_introspection_shows_the_same_schema(service: Service) -> None:
    """What `__schema` tells is the file, types and words."""
    told = got(service, get_introspection_query(specified_by_url=True, schema_description=True))
    assert print_schema(build_client_schema(told)) == print_schema(SCHEMA)


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    """`tradepost schema` prints the file and nothing else."""
    app(["schema"], result_action="return_value")
    assert capsys.readouterr().out == TEXT


# --- drift ---

# What is written instead of what, and what the one line has to name.
DRIFTS = {
    "a field that nothing is behind": ("  email: String!\n", "  email: String!\n  age: Int\n", "User.age"),
    "a query that nothing is behind": ("  users(\n", "  nobody: Int\n  users(\n", "Query.nobody"),
    "a mutation that nothing is behind": (
        "  cancelOrder(\n",
        "  loseOrder(id: ID!): Order!\n  cancelOrder(\n",
        "Mutation.loseOrder",
    ),
    "a subscription that nothing is behind": (
        "  orderStatusChanged(\n",
        "  userChanged(id: ID!): User!\n  orderStatusChanged(\n",
        "Subscription.userChanged",
    ),
    "a field of a connection": (
        "  nodes: [User!]!\n",
        "  nodes: [User!]!\n  sum: Int!\n",
        "UserConnection.sum",
    ),
    "a field of an edge": ("  node: User!\n", "  node: User!\n  role: String\n", "UserEdge.role"),
    "a field of PageInfo": ("  endCursor: String\n", "  endCursor: String\n  pages: Int\n", "PageInfo.pages"),
    "a type that nothing is behind": (
        '"A person who can place orders."',
        '"x"\ntype Shop { "x" name: String }\n"y"',
        "Shop.name",
    ),
    "a type of another kind": ("  total: Float!\n", "  total: Int!\n", "Order.total"),
    "a member that may be null and is not": (
        "  description: String\n",
        "  description: String!\n",
        "Product.description",
    ),
    "a member that may not be null and is": (
        '  price: Float!\n  "ISO',
        '  price: Float\n  "ISO',
        "Product.price",
    ),
    "a list whose items may be null": (
        "  lineItems: [LineItem!]!\n",
        "  lineItems: [LineItem]!\n",
        "Order.lineItems",
    ),
    "a relation that cannot always be kept": ("  user: User\n", "  user: User!\n", "Order.user"),
    "an argument that nobody reads": (
        "    id: ID!\n  ): User\n",
        "    id: ID!\n    at: Int\n  ): User\n",
        "Query.user",
    ),
    "an argument that is missing": (
        '    "Id of the user."\n    id: ID!\n  ): User!\n',
        '    "Id of the user."\n    email: String!\n  ): User!\n',
        "Mutation.deactivateUser",
    ),
    "an argument with a default": ("    first: Int\n", "    first: Int = 5\n", "first"),
    "a value of an enumeration too many": ("  PENDING\n", "  PENDING\n  LOST\n", "OrderStatus"),
    "a value of an enumeration too few": ('  "Cannot be ordered."\n  ARCHIVED\n', "", "ProductStatus"),
    "a member of an input that there is not": (
        '  sku: String!\n  "Name of the product, 1',
        '  sku: String!\n  colour: String\n  "Name of the product, 1',
        "CreateProductInput.colour",
    ),
    "a required member of an input that is not": (
        'decimals than the currency has."\n  price: Float!\n',
        'decimals than the currency has."\n  price: Float\n',
        "CreateProductInput.price",
    ),
    "a required member of an input that is missing": (
        '  "Id of the user who orders."\n  userId: ID!\n',
        "",
        "CreateOrderInput",
    ),
    "a member of a line that is missing": (
        '  "Number of units, 1 to 10,000."\n  quantity: Int!\n',
        "",
        "LineItemInput",
    ),
    "a member of an update that is required": (
        '  name: String\n  "Email address; unique among users, regardless of case."\n  email: String\n',
        '  name: String!\n  "Email address; unique among users, regardless of case."\n  email: String\n',
        "UpdateUserInput.name",
    ),
    "a member of an update that is missing": (
        '  "Whether they can place orders."\n  status: UserStatus\n',
        "",
        "UpdateUserInput",
    ),
    "a filter that nobody applies": (
        "  inStock: Boolean\n",
        "  inStock: Boolean\n  colour: String\n",
        "ProductFilter",
    ),
    "a filter that is missing": ('  "Only the product with this SKU."\n  sku: String\n', "", "ProductFilter"),
    "a filter with a default": ("  inStock: Boolean\n", "  inStock: Boolean = true\n", "ProductFilter"),
    "a member of an input with a default": (
        "  status: UserStatus\n}",
        "  status: UserStatus = ACTIVE\n}",
        "CreateUserInput.status",
    ),
    "a filter of another type": ("  ids: [ID!]\n", "  ids: [ID]\n", "ProductFilter"),
    "a type that is not there": ("): UserConnection\n", "): UserPage\n", "UserPage"),
    "what cannot be parsed": ("type User {", "type User {{", "line 130"),
    "nothing at all": (TEXT, " ", "line 1"),
    "no query": (TEXT, "type User { name: String }", "the file"),
    "no fields": (TEXT, "type Query { }", "line 1"),
}


@pytest.mark.parametrize(("old", "new", "named"), DRIFTS.values(), ids=DRIFTS)
def test_a_schema_that_drifted_stops_the_start(old: str, new: str, named: str) -> None:
    """One line says which file it is, and the place in it."""
    assert old in TEXT
    with pytest.raises(Drift) as caught:
        BoundSchema(TEXT.replace(old, new, 1), catalogue.RESOURCES)
    line = str(caught.value)
    assert line.startswith("contract/schema.graphql: ")
    assert named in line
    assert "\n" not in line


def test_the_service_does_not_start_with_a_drifted_schema(tmp_path: Path) -> None:
    """It is refused like any setting that cannot be used, before anything is opened."""
    found = load({}, database_url=f"sqlite:///{tmp_path / 'none.db'}")
    with pytest.raises(BadSetting, match=r"User\.age has nothing behind it"):
        assemble(found, schema=TEXT.replace("  email: String!\n", "  email: String!\n  age: Int\n", 1))
    assert not (tmp_path / "none.db").exists()


def test_what_the_schema_leaves_out_is_no_drift() -> None:
    """The schema may offer less than the records have: it is written by hand, and additive."""
    less = TEXT.replace('  "ISO 3166-1 alpha-2 code."\n  country: String!\n', "", 1)
    less = less.replace('  "Description of the product."\n  description: String\n', "", 1)
    assert less != TEXT
    assert BoundSchema(less, catalogue.RESOURCES).schema.type_map["Address"]


def test_what_is_to_go_may_be_marked() -> None:
    """A field evolves by being deprecated first: it is still answered, and tools are told."""
    marked = TEXT.replace(
        "  postalCode: String!\n", '  postalCode: String! @deprecated(reason: "Ask for zip.")\n', 1
    )
    bound = BoundSchema(marked, catalogue.RESOURCES)
    assert field_of(bound.schema, "Address.postalCode").deprecation_reason == "Ask for zip."


def test_the_packaged_text_is_the_file() -> None:
    """What the code reads is what is committed."""
    assert schema_text() == TEXT
