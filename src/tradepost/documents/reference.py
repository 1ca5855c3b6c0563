"""The reference: an OpenAPI document laid out for reading, with everything it refers to put in its place."""

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
class Line:
    """A member or a parameter: its name, and what may stand there."""

    name: str
    type: str
    bounds: str
    required: bool
    description: str
    read_only: bool = False
    link: str = ""


@dataclass
class Outcome:
    """One status of an operation."""

    status: str
    phrase: str
    description: str
    fields: list[str]
    kinds: list[str]
    schema: str
    examples: list[str]


@dataclass
class Operation:
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: dict[str, list[Line]]
    body_types: list[str]
    body: list[Line]
    body_examples: list[str]
    outcomes: list[Outcome]
    always: list[str]  # header fields of every answer
    usually: list[str]  # of every answer but that of a retired version
    lives: bool  # whether it belongs to a version, and says so when that is deprecated
    also: list[tuple[str, str]] = field(default_factory=list)  # HEAD and OPTIONS, by operation id


@dataclass
class Part:
    """The operations under one tag."""

    anchor: str
    name: str
    description: str
    operations: list[Operation]


@dataclass
class Described:
    """A schema that answers refer to."""

    name: str
    description: str
    lines: list[Line]


class Reference:
    """The parts of a document."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._components = document["components"]

    def parts(self) -> list[Part]:
        """The operations, by their tags."""
        found = {
            tag["name"]: Part(anchor(tag["name"]), tag["name"], tag["description"], [])
            for tag in self._document["tags"]
        }
        for path, item in self._document["paths"].items():
            for method in _SHOWN:
                if method in item:
                    found[item[method]["tags"][0]].operations.append(self._operation(path, method, item))
        return [part for part in found.values() if part.operations]

    def schemas(self) -> list[Described]:
        """What answers show, by name; bodies are shown with their operations."""
        return [
            Described(name, schema.get("description", ""), list(self._lines(schema)))
            for name, schema in self._components["schemas"].items()
            if not name.endswith(("Patch", "Fields", "Page")) and "Input" not in name
        ]

    def header_fields(self) -> list[Line]:
        """The header fields of answers."""
        return [
            Line(name, "", "", False, each["description"])
            for name, each in self._components["headers"].items()
        ]

    def _operation(self, path: str, method: str, item: Json) -> Operation:
        found = item[method]
        content = found.get("requestBody", {}).get("content", {})
        media: Json = next(iter(content.values()), {})
        outcomes = [self._outcome(status, answer) for status, answer in found["responses"].items()]
        parameters = self._parameters([*item["parameters"], *found.get("parameters", [])])
        always, usually = _common(outcomes)
        links = any(each.name == "cursor" for each in parameters.get("query", ()))
        for each in outcomes:
            shown = [name for name in each.fields if name not in (*always, *usually, *LIFE)]
            each.fields = [*shown, "Link"] if links and not each.kinds else shown
        return Operation(
            id=found["operationId"],
            method=method.upper(),
            path=path,
            summary=found["summary"],
            description=found.get("description", ""),
            parameters=parameters,
            body_types=list(content),
            body=[each for each in self._lines(media.get("schema", {})) if not each.read_only],
            body_examples=_pretty(media),
            outcomes=outcomes,
            always=always,
            usually=usually,
            lives="Deprecated" in found["responses"][outcomes[0].status]["headers"],
            also=_also(item, method),
        )

    def _parameters(self, given: list[Json]) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = {"path": [], "query": [], "header": []}
        for each in map(self._resolved, given):
            schema = each["schema"]
            found[each["in"]].append(
                Line(
                    each["name"],
                    self._type(schema),
                    _bounds(schema),
                    each.get("required", False),
                    each["description"],
                )
            )
        return {place: lines for place, lines in found.items() if lines}

    def _outcome(self, status: str, answer: Json) -> Outcome:
        found = self._resolved(answer)
        media: Json = next(iter(found.get("content", {}).values()), {})
        schema = media.get("schema", {})
        urls = schema.get("properties", {}).get("type", {}).get("enum", [])
        return Outcome(
            status=status,
            phrase=HTTPStatus(int(status)).phrase,
            description=found["description"],
            fields=list(found["headers"]),
            kinds=[url.rpartition("/")[2] for url in urls],
            schema="" if urls else _name(schema).removesuffix("Page"),
            examples=_pretty(media),
        )

    def _lines(self, schema: Json, prefix: str = "") -> Iterator[Line]:
        """A line for each member, and for those of objects that bodies nest."""
        members, required = self._members(schema)
        for name, each in members.items():
            read_only = each.get("readOnly", False)
            yield Line(
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
        """The members of an object, of alternatives those of all; and which there have to be in any case."""
        whole = self._resolved(schema)
        alternatives = [self._resolved(each) for each in whole.get("oneOf", [whole])]
        members: Json = {}
        for one in alternatives:
            for name, each in one.get("properties", {}).items():
                if members.get(name, {}).get("readOnly", True):
                    members[name] = each
        return members, set.intersection(*(set(one.get("required", [])) for one in alternatives))

    def _resolved(self, given: Json) -> Json:
        if "$ref" not in given:
            return given
        section, name = given["$ref"].split("/")[-2:]
        found: Json = self._components[section][name]
        return found

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


def _common(outcomes: list[Outcome]) -> tuple[list[str], list[str]]:
    """The header fields of every answer, and those of every answer but 410; a version's life aside."""
    fields = [name for name in outcomes[0].fields if name not in LIFE]
    always = [name for name in fields if all(name in each.fields for each in outcomes)]
    served = [each for each in outcomes if each.status != _RETIRED]
    return always, [n for n in fields if n not in always and all(n in each.fields for each in served)]


def _also(item: Json, method: str) -> list[tuple[str, str]]:
    """What is told with the first operation of a path: its HEAD and OPTIONS."""
    if method != next(each for each in _SHOWN if each in item):
        return []
    return [(name.upper(), item[name]["operationId"]) for name in ("head", "options") if name in item]


def _name(schema: Json) -> str:
    """The name of the schema that is referred to, of several the first."""
    first = schema.get("anyOf", [schema])[0]
    return str(first.get("$ref", "")).rpartition("/")[2]


def _link(schema: Json) -> str:
    """The schema to read on in; those of bodies are told where they are used."""
    name = _name(schema) or _name(schema.get("items", {}))
    return "" if "Input" in name else name


def _bounds(schema: Json) -> str:
    said = [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
    if schema.get("default") is not None:
        default = schema["default"]
        said.append(f"default {default if isinstance(default, str) else json.dumps(default)}")
    return ", ".join(said)


def _pretty(media: Json) -> list[str]:
    if "example" in media:
        return [pretty(media["example"])]
    return [pretty(each["value"]) for each in media.get("examples", {}).values()]
