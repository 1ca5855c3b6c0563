"""`tradepost schema`: prints the GraphQL schema."""

from tradepost import catalogue
from tradepost.graphql.schema import BoundSchema, schema_text


def schema() -> None:
    """Print the GraphQL schema, after checking that the code implements it."""
    print(BoundSchema(schema_text(), catalogue.RESOURCES).text, end="")
