"""A contract held against answers: what the OpenAPI document does not say of one is an error."""

import copy
import json
import re
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.schemas import schema_v31
from referencing import Registry
from referencing.jsonschema import DRAFT202012, SchemaRegistry

from tests.service import Reply, Service

Json = dict[str, Any]

# Of the message, not of the API.
_UNSAID = {"content-type", "content-length", "connection"}
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_FORMATS = FormatChecker()


class Specification(OpenAPIV31SpecValidator):
    """What OpenAPI 3.1 says a document is, read once: left to itself, jsonschema reads it at each reference."""

    _read: SchemaRegistry = Registry().with_resource(
        schema_v31["$id"], DRAFT202012.create_resource(dict(schema_v31))
    )
    schema_validator = Draft202012Validator(dict(schema_v31), registry=_read.crawl())


class Contract:
    """An OpenAPI document, asked what it says."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self._patterns: list[tuple[re.Pattern[str], str]] = [
            (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), path) for path in document["paths"]
        ]
        self._closed = copy.deepcopy(document["components"])
        for schema in self._closed["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False

    def operations(self) -> set[tuple[str, str]]:
        """Every (method, path), ids in the path all called {id}."""
        return {
            (method.upper(), re.sub(r"\{\w+\}", "{id}", path))
            for path, item in self.document["paths"].items()
            for method in item
            if method in _METHODS
        }

    def resolved(self, part: Json) -> Json:
        """What a reference names; whatever is none is itself."""
        while "$ref" in part:
            _, _, section, name = part["$ref"].split("/")
            part = self.document["components"][section][name]
        return part

    def path(self, path: str) -> str:
        """The path of the document that an address is of, one without parameters before one with."""
        found = [template for pattern, template in self._patterns if pattern.fullmatch(path)]
        return min(found, key=_parameters)

    def parameters(self, path: str, method: str) -> list[Json]:
        """Of an operation, those of its path included."""
        item = self.document["paths"][path]
        return [self.resolved(each) for each in [*item["parameters"], *item[method].get("parameters", [])]]

    def misfits(self, instance: Any, schema: Json, *, closed: bool = False) -> list[str]:
        """How something does not fit a schema; `closed` ones name every member there is."""
        components = self._closed if closed else self.document["components"]
        checked = Draft202012Validator({**schema, "components": components}, format_checker=_FORMATS)
        return [f"{error.json_path}: {error.message}" for error in checked.iter_errors(instance)]

    def objections(self, method: str, path: str, reply: Reply) -> list[str]:
        """What an answer does or holds that the document does not say."""
        operation = self.document["paths"][self.path(path)][method.lower()]
        if str(reply.status) not in operation["responses"]:
            return [f"status {reply.status}"]
        said = self.resolved(operation["responses"][str(reply.status)])
        return [*self._of_fields(said, reply), *self._of_body(said, reply)]

    def _of_fields(self, said: Json, reply: Reply) -> list[str]:
        fields = {name.lower(): self.resolved(each) for name, each in said["headers"].items()}
        needed = {name for name, each in fields.items() if each.get("required")}
        return [
            *[f"header {name}" for name in reply.headers if name not in fields and name not in _UNSAID],
            *[f"no header {name}" for name in needed if name not in reply.headers],
        ]

    def _of_body(self, said: Json, reply: Reply) -> list[str]:
        content = said.get("content")
        if content is None:
            return [f"a body: {reply.body!r}"] if reply.body else []
        kind = reply.headers["content-type"].partition(";")[0]
        if kind not in content:
            return [f"media type {kind}"]
        if not kind.endswith("json"):
            return []
        return self.misfits(json.loads(reply.body), content[kind]["schema"], closed=True)


def _parameters(template: str) -> int:
    return template.count("{")


class Held(Service):
    """A service whose every answer is held against its contract; `met` is what was met of it."""

    def __init__(self, service: Service, contract: Contract) -> None:
        self.__dict__.update(service.__dict__)
        self.contract = contract
        self.met: set[tuple[str, str, int]] = set()

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = "", **headers: str
    ) -> Reply:
        reply = super().call(method, path, body, key=key, **headers)
        plain = path.partition("?")[0]
        assert not self.contract.objections(method, plain, reply), (method, path, reply)
        self.met.add((method, self.contract.path(plain), reply.status))
        return reply
