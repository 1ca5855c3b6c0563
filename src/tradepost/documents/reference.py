"""The reference: an OpenAPI document prepared for its HTML page, with all references resolved."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tradepost.documents.prose import ALTERNATIVE, anchor, pretty
from tradepost.rest.openapi.headers import LIFE

Json = dict[str, Any]

_RETIRED = "410"
_SHOWN = ("get", "post", "put", "patch", "delete")
_BOUNDS = {
    "minLength": "at least {} long",
    "maxLength": "at most {} long",
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "pattern": "matches {}",
}


@dataclass
class ReferenceLine:
    """A member or a parameter: its name, type and bounds."""

    name: str
    type: str
    bounds: str
    required: bool
    description: str
    read_only: bool = False
    link: str = ""


@dataclass
class ReferenceResponse:
    """The response of an operation with one status."""

    status: str
    phrase: str
    description: str
    fields: list[str]
    kinds: list[str]
    schema: str
    examples: list[str]


@dataclass
class ReferenceOperation:
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: dict[str, list[ReferenceLine]]
    body_types: list[str]
    body: list[ReferenceLine]
    body_examples: list[str]
    outcomes: list[ReferenceResponse]
    always: list[str]  # header fields of every response
    usually: list[str]  # of every response except that of a retired version
    versioned: bool  # whether responses have the header fields of a deprecated version
    also: list[tuple[str, str]] = field(default_factory=list)  # HEAD and OPTIONS, by operation id


@dataclass
class ReferencePart:
    """The operations of one tag."""

    anchor: str
    name: str
    description: str
    operations: list[ReferenceOperation]


@dataclass
class ReferenceSchema:
    """A schema that responses refer to."""

    name: str
    description: str
    lines: list[ReferenceLine]


class Reference:
    """The parts of an OpenAPI document."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._components = document["components"]

    def parts(self) -> list[ReferencePart]:
        """The operations by their tags."""
        parts = {
            tag["name"]: ReferencePart(anchor(tag["name"]), tag["name"], tag["description"], [])
            for tag in self._document["tags"]
        }
        for path, item in self._document["paths"].items():
            for method in _SHOWN:
                if method in item:
                    parts[item[method]["tags"][0]].operations.append(self._operation(path, method, item))
        return [part for part in parts.values() if part.operations]

    def schemas(self) -> list[ReferenceSchema]:
        """The schemas of responses; those of bodies are shown with their operations."""
        return [
            ReferenceSchema(name, schema.get("description", ""), list(self._lines(schema)))
            for name, schema in self._components["schemas"].items()
            if not name.endswith(("Patch", "Fields", "Page")) and "Input" not in name
        ]

    def header_fields(self) -> list[ReferenceLine]:
        """The header fields of responses."""
        return [
            ReferenceLine(name, "", "", False, each["description"])
            for name, each in self._components["headers"].items()
        ]

    def _operation(self, path: str, method: str, item: Json) -> ReferenceOperation:
        operation = item[method]
        content = operation.get("requestBody", {}).get("content", {})
        media: Json = next(iter(content.values()), {})
        outcomes = [self._outcome(status, answer) for status, answer in operation["responses"].items()]
        parameters = self._parameters([*item["parameters"], *operation.get("parameters", [])])
        always, usually = _common(outcomes)
        links = any(each.name == "cursor" for each in parameters.get("query", ()))
        for each in outcomes:
            shown = [name for name in each.fields if name not in (*always, *usually, *LIFE)]
            each.fields = [*shown, "Link"] if links and not each.kinds else shown
        return ReferenceOperation(
            id=operation["operationId"],
            method=method.upper(),
            path=path,
            summary=operation["summary"],
            description=operation.get("description", ""),
            parameters=parameters,
            body_types=list(content),
            body=[each for each in self._lines(media.get("schema", {})) if not each.read_only],
            body_examples=_pretty(media),
            outcomes=outcomes,
            always=always,
            usually=usually,
            versioned="Deprecated" in operation["responses"][outcomes[0].status]["headers"],
            also=_also(item, method),
        )

    def _parameters(self, parameters: list[Json]) -> dict[str, list[ReferenceLine]]:
        by_place: dict[str, list[ReferenceLine]] = {"path": [], "query": [], "header": []}
        for each in map(self._resolved, parameters):
            schema = each["schema"]
            by_place[each["in"]].append(
                ReferenceLine(
                    each["name"],
                    self._type(schema),
                    _bounds(schema),
                    each.get("required", False),
                    each["description"],
                )
            )
        return {place: lines for place, lines in by_place.items() if lines}

    def _outcome(self, status: str, answer: Json) -> ReferenceResponse:
        response = self._resolved(answer)
        media: Json = next(iter(response.get("content", {}).values()), {})
        schema = media.get("schema", {})
        urls = schema.get("properties", {}).get("type", {}).get("enum", [])
        return ReferenceResponse(
            status=status,
            phrase=HTTPStatus(int(status)).phrase,
            description=response["description"],
            fields=list(response["headers"]),
            kinds=[url.rpartition("/")[2] for url in urls],
            schema="" if urls else _name(schema).removesuffix("Page"),
            examples=_pretty(media),
        )

    def _lines(self, schema: Json, prefix: str = "") -> Iterator[ReferenceLine]:
        """A line for each member, including the members of nested objects in bodies."""
        members, required = self._members(schema)
        for name, each in members.items():
            read_only = each.get("readOnly", False)
            yield ReferenceLine(
                name=prefix + name,
                type=self._type(each),
                bounds=_bounds(each),
                required=name in required,
                description=each.get("description", ""),
                read_only=read_only,
                link=_link(each),
            )
            inner = each.get("items", {})
            if "Input" in _name(inner):
                for line in self._lines(inner, f"{prefix}{name}[]."):
                    line.read_only = line.read_only or read_only
                    yield line

    def _members(self, schema: Json) -> tuple[Json, set[str]]:
        """The members of an object, or of all its alternatives, and the names that all of them require."""
        whole = self._resolved(schema)
        alternatives = [self._resolved(each) for each in whole.get("oneOf", [whole])]
        members: Json = {}
        for one in alternatives:
            for name, each in one.get("properties", {}).items():
                if members.get(name, {}).get("readOnly", True):
                    members[name] = each
        return members, set.intersection(*(set(one.get("required", [])) for one in alternatives))

    def _resolved(self, value: Json) -> Json:
        if "$ref" not in value:
            return value
        section, name = value["$ref"].split("/")[-2:]
        component: Json = self._components[section][name]
        return component

    def _type(self, schema: Json) -> str:
        if "$ref" in schema:
            return _name(schema)
        if "anyOf" in schema:
            return " or ".join(self._type(each) for each in schema["anyOf"])
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return ALTERNATIVE.join("null" if each is None else str(each) for each in schema["enum"])
        types = schema.get("type", "any")
        named = " or ".join(types) if isinstance(types, list) else types
        if "items" in schema:
            return named.replace("array", f"list of {self._type(schema['items'])}")
        return named.replace("string", schema["format"]) if schema.get("format") in _FORMATS else named


_FORMATS = {"date-time", "uuid", "uri", "idn-email"}


def _common(outcomes: list[ReferenceResponse]) -> tuple[list[str], list[str]]:
    """The header fields of every response, and those of all but 410; without those of a version's life."""
    fields = [name for name in outcomes[0].fields if name not in LIFE]
    always = [name for name in fields if all(name in each.fields for each in outcomes)]
    served = [each for each in outcomes if each.status != _RETIRED]
    return always, [n for n in fields if n not in always and all(n in each.fields for each in served)]


def _also(item: Json, method: str) -> list[tuple[str, str]]:
    """HEAD and OPTIONS of a path, which are shown with its first operation."""
    if method != next(each for each in _SHOWN if each in item):
        return []
    return [(name.upper(), item[name]["operationId"]) for name in ("head", "options") if name in item]


def _name(schema: Json) -> str:
    """The name of the schema that is referred to, or of the first of several."""
    first = schema.get("anyOf", [schema])[0]
    return str(first.get("$ref", "")).rpartition("/")[2]


def _link(schema: Json) -> str:
    """The schema to link to; those of bodies are shown where they are used."""
    name = _name(schema) or _name(schema.get("items", {}))
    return "" if "Input" in name else name


def _bounds(schema: Json) -> str:
    bounds = [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
    if schema.get("default") is not None:
        default = schema["default"]
        bounds.append(f"default {default if isinstance(default, str) else json.dumps(default)}")
    return ", ".join(bounds)


def _pretty(media: Json) -> list[str]:
    if "example" in media:
        return [pretty(media["example"])]
    return [pretty(each["value"]) for each in media.get("examples", {}).values()]
