"""`/graphql/schema`: the text of the GraphQL schema. It needs the same scope as introspection."""

from tradepost.documents.document import Content, Page
from tradepost.documents.document import page as document
from tradepost.http.door import Door
from tradepost.http.request import Request

_PATH = "/graphql/schema"
_SDL = b"text/plain; charset=utf-8"
_SCOPE = "introspection"


def schema_document(text: str, door: Door | None) -> Page:
    """The schema for everyone, or only for keys with the scope introspection if there is a door."""
    body = text.encode()

    async def content(request: Request) -> Content:
        if door is not None:
            (await door.let_in(request)).require(_SCOPE)
        return Content(_SDL, body)

    return document(_PATH, content)
