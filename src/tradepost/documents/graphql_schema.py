"""`/graphql/schema`: the text of the GraphQL schema. It needs the same scope as introspection."""

from tradepost.documents.document import Content, Guard
from tradepost.documents.document import page as document
from tradepost.http.exchange import Handler
from tradepost.http.request import Request

_PATH = "/graphql/schema"
_SDL = b"text/plain; charset=utf-8"


def schema_document(text: str, guard: Guard | None) -> Handler:
    """The schema for everyone, or only for the callers that a guard lets in."""
    content = Content(_SDL, text.encode())

    async def source(request: Request) -> Content:
        del request
        return content

    return document(_PATH, source, guard=guard)
