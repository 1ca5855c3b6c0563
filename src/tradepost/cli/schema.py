"""`tradepost schema`: the GraphQL schema."""

from tradepost import catalogue
from tradepost.graphql.binding import Bound, schema_text


def schema() -> None:
    """Print the GraphQL schema, once it is known that the code keeps it."""
    print(Bound(schema_text(), catalogue.RESOURCES).text, end="")
