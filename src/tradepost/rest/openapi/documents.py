"""The documents besides the resources: public pages and operations, each at an address of its own.

Their summaries and media types are data: `documents.json`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.json import decode

from tradepost.problems import (
    Internal,
    Malformed,
    NotFound,
    PreconditionFailed,
    Problem,
    VersionRetired,
    kinds,
)
from tradepost.rest.openapi import parameters
from tradepost.rest.openapi.answers import Answers
from tradepost.rest.openapi.headers import LIFE, PAGE
from tradepost.rest.openapi.schemas import Json

TAG = "Documents"
_FILE = Path(__file__).with_name("documents.json")


class PathParameter(Struct):
    """A parameter in the path of a document."""

    name: str
    description: str


class PublicDocument(Struct, rename="camel", forbid_unknown_fields=True):
    """An entry of `documents.json`: its address, its media types, and its own header fields and problems.

    Every document answers GET, HEAD and OPTIONS. One with a parameter can answer 404; a versioned one is
    deprecated and retired with its API version.
    """

    path: str
    operation: str
    summary: str
    content: Json
    parameter: PathParameter | None = None
    versioned: bool = False
    header_fields: list[str] = []
    problems: list[str] = []

    @property
    def life(self) -> Sequence[str]:
        """The header fields about the lifecycle of the API version."""
        return LIFE if self.versioned else ()


def document_paths(version: str, event_types: Sequence[str], answers: Answers) -> dict[str, Json]:
    """The path items of all documents by path; `version` stands in the paths of versioned ones."""
    values = {"kind": [each.kind for each in kinds()], "type": list(event_types)}
    documents = decode(_FILE.read_bytes(), type=list[PublicDocument])
    return {
        document.path.replace("{version}", version): _path_item(document, answers, values)
        for document in documents
    }


def _path_item(document: PublicDocument, answers: Answers, values: Mapping[str, list[str]]) -> Json:
    page = PAGE if "text/html" in document.content else ()
    carried = ["ETag", "Cache-Control", *document.header_fields, *document.life, *page]
    gone = _gone(document, answers)
    own = [kind for kind in kinds() if kind.kind in document.problems]
    failures: list[type[Problem]] = [Malformed, PreconditionFailed, Internal, *own]
    shared = answers.problems(
        failures, document.life, group="Versioned" if document.versioned else "Document"
    )
    get = {
        "200": answers.success(document.summary + ".", carried, document.content),
        "304": answers.success("Not changed: `If-None-Match` names its current state.", carried),
        **dict(sorted((shared | gone).items())),
    }
    options = {"204": answers.success("The methods of this address.", ["Allow", *document.life]), **gone}
    conditions = {"parameters": parameters.refer("IfNoneMatch", "IfMatch")}
    named = [_parameter(document.parameter, values)] if document.parameter else []
    return {
        "parameters": [*named, *parameters.refer("RequestId")],
        "get": {**_operation("get", document), **conditions, "responses": get},
        "head": {**_operation("head", document), **conditions, "responses": answers.without_body(get)},
        "options": {**_operation("options", document), "responses": options},
    }


def _gone(document: PublicDocument, answers: Answers) -> Json:
    """The responses if there is no document: its version is retired, or the name is unknown."""
    return {
        **answers.problems([VersionRetired] if document.versioned else [], LIFE),
        # The newest API version answers these paths, with its header fields.
        **answers.problems([NotFound] if document.parameter else [], ["Vary", *LIFE], group="Document"),
    }


def _operation(method: str, document: PublicDocument) -> Json:
    suffix = {"get": "", "head": ": header fields only", "options": ": methods of the address"}
    return {
        "operationId": f"{method}{document.operation}",
        "summary": document.summary + suffix[method],
        "tags": [TAG],
        "security": [],
    }


def _parameter(parameter: PathParameter, values: Mapping[str, list[str]]) -> Json:
    return {
        "name": parameter.name,
        "in": "path",
        "required": True,
        "description": parameter.description,
        "schema": {"type": "string", "enum": values[parameter.name]},
    }
