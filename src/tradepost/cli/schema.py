"""`tradepost schema`: the GraphQL schema."""

from tradepost import catalogue
from tradepost.graphql.schema import BoundSchema, schema_text


def schema() -> None:
    """Print the GraphQL schema, once it is known that the code keeps it."""
    print(BoundSchema(schema_text(), catalogue.RESOURCES).text, end="")
