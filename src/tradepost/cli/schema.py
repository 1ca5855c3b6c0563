"""`tradepost schema`: prints the GraphQL schema."""

from tradepost import catalogue
from tradepost.graphql.binding import Bound, schema_text


def schema() -> None:
    """Print the GraphQL schema, after checking that the code implements it."""
    print(Bound(schema_text(), catalogue.RESOURCES).text, end="")
