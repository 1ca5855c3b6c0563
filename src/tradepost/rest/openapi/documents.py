"""The documents beside the resources: public pages and operations, each at an address of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tradepost.problems import (
    Internal,
    Malformed,
    NotFound,
    PreconditionFailed,
    Problem,
    Unavailable,
    VersionRetired,
    kinds,
)
from tradepost.rest.openapi import parameters
from tradepost.rest.openapi.answers import Answers
from tradepost.rest.openapi.headers import LIFE, PAGE
from tradepost.rest.openapi.schemas import Json

TAG = "Documents"
_HTML: Json = {"text/html": {"schema": {"type": "string"}}}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _list_of(item: Json) -> Json:
    properties = {"items": {"type": "array", "items": item}, "next": {"type": "null"}}
    return {"type": "object", "required": ["items", "next"], "properties": properties}


def _object(properties: Mapping[str, Json]) -> Json:
    return {"type": "object", "required": list(properties), "properties": dict(properties)}


_TEXT: Json = {"type": "string"}
_URL: Json = {"type": "string", "format": "uri"}
_INSTANT: Json = {"type": ["string", "null"], "format": "date-time"}
_VERSION = _object(
    {
        "version": _TEXT,
        "phase": {"type": "string", "enum": ["active", "deprecated", "sunset", "retired"]},
        "introduced": {"type": "string", "format": "date"},
        "deprecatedAt": _INSTANT,
        "sunsetAt": _INSTANT,
        "link": {"type": ["string", "null"], "format": "uri"},
    }
)
_EVENT_TYPE = _object(
    {
        "type": _TEXT,
        "description": _TEXT,
        "schemaVersion": _TEXT,
        "dataschema": _URL,
        "schema": {"type": "object", "description": "The JSON Schema of the event's `data`."},
    }
)
_KIND = _object(
    {
        "type": _URL,
        "kind": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "phrase": _TEXT,
        "description": _TEXT,
        "advice": _TEXT,
        "example": {"$ref": "#/components/schemas/Problem"},
    }
)


@dataclass(frozen=True)
class Document:
    """One address: what is there, in which media types, and what besides 304 and 200 it answers."""

    path: str
    operation: str
    summary: str
    content: Json
    problems: Sequence[type[Problem]] = ()
    parameter: Json | None = None
    fields: Sequence[str] = field(default=())


def documents(version: str, event_types: Sequence[str]) -> list[Document]:
    """Every document there is; those of a version come under its name."""
    kind = _named("kind", [each.kind for each in kinds()], "The kind of problem.")
    event_type = _named("type", event_types, "The full name of the event type.")
    schema = {"application/schema+json": {"schema": {"type": "object"}}}
    either = ("Vary",)
    life = (VersionRetired,)
    return [
        Document("/", "Home", "Where things are", _json({"type": "object"}) | _HTML, fields=either),
        Document("/docs", "Docs", "The documentation, of the newest version", _HTML),
        Document(f"/{version}/docs", "VersionDocs", "The documentation", _HTML, life, fields=LIFE),
        Document(
            f"/{version}/openapi.json",
            "OpenApi",
            "This document",
            _json({"type": "object"}),
            life,
            fields=LIFE,
        ),
        Document("/versions", "Versions", "The versions, and the life of each", _json(_list_of(_VERSION))),
        Document(
            "/event-types",
            "EventTypes",
            "The types of events, with their schemas",
            _json(_list_of(_EVENT_TYPE)),
        ),
        Document(
            "/event-types/{type}",
            "EventType",
            "The schema of its data",
            schema,
            [NotFound],
            event_type,
        ),
        Document(
            "/graphql/schema",
            "GraphQLSchema",
            "The schema of the GraphQL interface; in production for keys with the scope introspection",
            {"text/plain": {"schema": {"type": "string"}}},
        ),
        Document(
            "/problems",
            "Problems",
            "What can go wrong, and what to do",
            _json(_list_of(_KIND)) | _HTML,
            fields=either,
        ),
        Document(
            "/problems/{kind}", "Problem", "A kind of problem", _json(_KIND) | _HTML, [NotFound], kind, either
        ),
        Document("/livez", "Liveness", "Whether the process runs", _json(_state("live"))),
        Document("/readyz", "Readiness", "Whether it can answer", _json(_state("ready")), [Unavailable]),
        Document(
            "/metrics",
            "Metrics",
            "Figures for Prometheus",
            {"text/plain": {"schema": _TEXT}},
        ),
    ]


def path_item(document: Document, answers: Answers) -> Json:
    """The path item of a document."""
    carried = ["ETag", "Cache-Control", *document.fields, *(PAGE if "text/html" in document.content else ())]
    life = [each for each in document.fields if each in LIFE]
    failures: list[type[Problem]] = [Malformed, PreconditionFailed, Internal, *document.problems]
    own = [kind for kind in failures if kind not in (VersionRetired, NotFound)]
    retired = [kind for kind in failures if kind is VersionRetired]
    unknown = [kind for kind in failures if kind is NotFound]  # told by the newest version
    shared = {
        **answers.problems(own, life, group="Versioned" if life else "Document"),
        **answers.problems(retired, LIFE),
        **answers.problems(unknown, ["Vary", *LIFE], group="Document"),
    }
    got = {
        "200": answers.success(document.summary + ".", carried, document.content),
        "304": answers.success("It is as `If-None-Match` knows it.", carried),
        **dict(sorted(shared.items())),
    }
    asked = parameters.refer("IfNoneMatch", "IfMatch")
    named = [document.parameter] if document.parameter else []
    return {
        "parameters": [*named, *parameters.refer("RequestId")],
        "get": {**_operation("get", document), "parameters": asked, "responses": got},
        "head": {
            **_operation("head", document),
            "parameters": asked,
            "responses": answers.without_body(got),
        },
        "options": {
            **_operation("options", document),
            "responses": {
                "204": answers.success("The methods the address takes.", ["Allow", *life]),
                **answers.problems(retired, LIFE),
                **answers.problems(unknown, ["Vary", *LIFE], group="Document"),
            },
        },
    }


def _operation(method: str, document: Document) -> Json:
    said = {"get": "", "head": ": the header fields alone", "options": ": the methods of the address"}[method]
    return {
        "operationId": f"{method}{document.operation}",
        "summary": document.summary + said,
        "tags": [TAG],
        "security": [],
    }


def _state(word: str) -> Json:
    return _object({"status": {"type": "string", "const": word}})


def _named(name: str, values: Sequence[str], description: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", "enum": list(values)},
    }
