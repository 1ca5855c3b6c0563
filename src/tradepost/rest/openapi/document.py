"""The document itself: the whole API of a version, in OpenAPI 3.1.

It is derived from the shapes, so it uses the version's names of members, and everything in the catalogue is
documented.
"""

from collections.abc import Iterable, Mapping, Sequence

from tradepost.domain.record import Record
from tradepost.rest.openapi.address import addresses
from tradepost.rest.openapi.answers import MEMBER_ERROR, PROBLEM, Answers
from tradepost.rest.openapi.documents import TAG, document_paths
from tradepost.rest.openapi.examples import Examples
from tradepost.rest.openapi.headers import HEADERS
from tradepost.rest.openapi.introduction import introduction
from tradepost.rest.openapi.operations import SECURITY, ResourceOperations
from tradepost.rest.openapi.parameters import SHARED
from tradepost.rest.openapi.schemas import Json, Schemas
from tradepost.rest.openapi.webhooks import PARAMETERS, attempt_number, webhooks
from tradepost.rest.openapi.words import heading
from tradepost.rest.shape import Shape
from tradepost.settings import Settings
from tradepost.versions.changes import Version

_KEY: Json = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "tp_<prefix>_<secret>",
    "description": "An API key. Each operation names the scope it needs; `admin` includes all scopes.",
}
_PAGES: Json = {"name": TAG, "description": "Everything besides the resources."}


def document(
    version: Version,
    shapes: Mapping[type[Record], Shape],
    base_url: str,
    event_types: Sequence[str],
    settings: Settings,
    *,
    deprecated: bool = False,
) -> Json:
    """The OpenAPI document of a version; `event_types` are full names, `settings` those of the service."""
    schemas, answers = Schemas(shapes, attempt_number(settings)), Answers(base_url)
    example = next((name for name in event_types if name.endswith(".order.placed")), event_types[0])
    examples = Examples(shapes, base_url, example)
    operations = ResourceOperations(list(shapes.values()), schemas, answers, examples, deprecated)
    paths = {
        address.path: operations.at(address) for shape in shapes.values() for address in addresses(shape)
    }
    paths |= document_paths(version.name, event_types, answers)
    received = webhooks(event_types, schemas, examples, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tradepost",
            "summary": "Orders, users and products.",
            "description": introduction(settings),
            "version": version.name,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url}],
        "tags": [*_tags(shapes.values()), _PAGES],
        "security": [{SECURITY: []}],
        "paths": paths,
        "webhooks": received,
        "components": {
            "securitySchemes": {SECURITY: _KEY},
            "schemas": {**schemas.made, "Problem": PROBLEM, "MemberError": MEMBER_ERROR},
            "parameters": {**SHARED, **(PARAMETERS if received else {})},
            "headers": HEADERS,
            "responses": dict(sorted(answers.made.items())),
        },
    }


def _tags(shapes: Iterable[Shape]) -> list[Json]:
    return [
        {"name": heading(shape.record), "description": (shape.record.__doc__ or "").strip()}
        for shape in shapes
    ]
