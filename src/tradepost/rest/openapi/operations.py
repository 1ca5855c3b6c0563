"""The operations: what each method of an address takes and returns, for any resource."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tradepost import problems
from tradepost.actions.standard import StandardActions
from tradepost.domain.record import Mark, members
from tradepost.rest.openapi import parameters
from tradepost.rest.openapi.address import ResourceAddress
from tradepost.rest.openapi.answers import PATCHING, Answers
from tradepost.rest.openapi.examples import Examples
from tradepost.rest.openapi.headers import LIFE, RATE, SHOWN
from tradepost.rest.openapi.links import links
from tradepost.rest.openapi.schemas import Json, Schemas
from tradepost.rest.openapi.words import heading, many, one, words
from tradepost.rest.shape import Shape

SECURITY = "apiKey"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"

Kinds = list[type[problems.Problem]]

_ADMISSION: Kinds = [
    problems.Malformed,
    problems.Unauthenticated,
    problems.Forbidden,
    problems.NotAcceptable,
    problems.VersionRetired,
    problems.RateLimited,
    problems.Internal,
    problems.Unavailable,
]
_BODY: Kinds = [problems.TooLarge, problems.UnsupportedMediaType, problems.Invalid]
_UNIQUE = frozenset({Mark.UNIQUE, Mark.UNIQUE_FOLDED})
_LOST_RACE: Kinds = [problems.Conflict]
# By the prefix of the operation's name.
_DESCRIPTIONS = {
    "replace": "Members left out take their defaults. A request that changes nothing keeps the ETag.",
    "update": "A JSON Merge Patch (RFC 7396): null sets the default, arrays are replaced. A request that "
    "changes nothing keeps the ETag.",
}


@dataclass(frozen=True)
class ResourceOperations:
    """Makes the operations of an address."""

    shapes: Sequence[Shape]
    schemas: Schemas
    answers: Answers
    examples: Examples
    deprecated: bool

    def at(self, address: ResourceAddress) -> Json:
        """The path item of an address: its parameters and an operation for each method."""
        record, resource = address.shape.record, address.shape.resource
        found: Json = {"parameters": []}
        if address.under and resource.parent:
            found["parameters"].append(parameters.path(address.parent_parameter, resource.parent.parent.kind))
        if address.item:
            found["parameters"].append(parameters.path("id", record.kind))
        found["parameters"] += parameters.refer("RequestId", "Traceparent")
        made: dict[str, Callable[[ResourceAddress], Json]] = {
            "GET": self._get if address.item else self._list,
            "HEAD": self._head,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
            "OPTIONS": self._options,
        }
        for method in address.methods:
            found[method.lower()] = made[method](address)
        return found

    def _list(self, address: ResourceAddress) -> Json:
        shape = address.shape
        taken = [
            *parameters.refer("Limit", "Cursor", "Offset"),
            parameters.sort(shape),
            parameters.fields(shape),
            *parameters.filters(shape),
            *parameters.refer("IfNoneMatch", "IfMatch"),
        ]
        content = self._content(address, self.schemas.page(shape), self.examples.page(shape))
        carried = [*SHOWN, *LIFE, *RATE]
        return {
            **self._operation(address, f"list{address.nouns}", f"List the {many(shape.record)}{address.of}"),
            "parameters": taken,
            "responses": {
                "200": self.answers.success("A page of the list.", carried, content),
                "304": self.answers.success(
                    "Not changed: `If-None-Match` names the current state of the page.", carried
                ),
                **self._problems(address, [problems.PreconditionFailed]),
            },
        }

    def _get(self, address: ResourceAddress) -> Json:
        shape = address.shape
        content = self._content(address, self.schemas.selected(shape), self.examples.item(shape))
        carried = [*SHOWN, *LIFE, *RATE]
        return {
            **self._operation(address, f"get{address.noun}", f"Get {one(shape.record)}{address.of}"),
            "parameters": [parameters.fields(shape), *parameters.refer("IfNoneMatch", "IfMatch")],
            "responses": {
                "200": self.answers.success("The item.", carried, content),
                "304": self.answers.success(
                    "Not changed: `If-None-Match` names the current state of the item.", carried
                ),
                **self._problems(address, [problems.PreconditionFailed]),
            },
        }

    def _head(self, address: ResourceAddress) -> Json:
        like = self._get(address) if address.item else self._list(address)
        name = like["operationId"].removeprefix("get").removeprefix("list")
        return {
            **like,
            "operationId": f"head{name}",
            "summary": f"{like['summary']}: header fields only",
            "responses": self.answers.without_body(like["responses"]),
        }

    def _post(self, address: ResourceAddress) -> Json:
        shape = address.shape
        made_of = {each: self.schemas.created(each) for each in self._makes(shape)}
        content = self._one_of(address, made_of, {each: self.examples.created(each) for each in made_of})
        carried = ["Location", *SHOWN, "Idempotency-Replayed", *LIFE, *RATE]
        made = self.answers.success("The new item.", carried, content)
        new = [address, *(ResourceAddress(each, under=False, item=False) for each in self._makes(shape)[1:])]
        made["links"] = {name: link for each in new for name, link in links(each, self.shapes)}
        kinds = [
            *_LOST_RACE,
            problems.KeyInUse,
            *self._unique(address),
            *_BODY,
            problems.IdempotencyKeyReused,
        ]
        return {
            **self._operation(
                address, f"create{address.noun}", f"Create {one(shape.record)}{address.of}", "create"
            ),
            "parameters": parameters.refer("IdempotencyKey"),
            "requestBody": self._new_body(address),
            "responses": {"201": made, **self._problems(address, kinds, method="POST")},
        }

    def _put(self, address: ResourceAddress) -> Json:
        kinds = [*_LOST_RACE, *self._unique(address), problems.PreconditionFailed, *_BODY]
        return {
            **self._operation(
                address,
                f"replace{address.noun}",
                f"Replace {one(address.shape.record)}{address.of}",
                "replace",
            ),
            "parameters": parameters.refer("IfMatch", "IfNoneMatch"),
            "requestBody": self._body(address),
            "responses": {
                "200": self._changed(address),
                **self._problems(address, kinds, method="PUT"),
            },
        }

    def _patch(self, address: ResourceAddress) -> Json:
        schema = self.schemas.patch(address.shape, under=address.under)
        example = self.examples.patch(address.shape, under=address.under)
        kinds = [*_LOST_RACE, *self._unique(address), problems.PreconditionFailed, *_BODY]
        fields = ["ETag", "Vary", "Cache-Control", "Preference-Applied", *LIFE, *RATE]
        return {
            **self._operation(
                address, f"update{address.noun}", f"Change {one(address.shape.record)}{address.of}", "replace"
            ),
            "parameters": parameters.refer("IfMatch", "IfNoneMatch", "Prefer"),
            "requestBody": {
                "required": True,
                "content": {
                    _MERGE_PATCH: {"schema": schema, "example": example},
                    _JSON: {"schema": schema, "example": example},
                    address.vendor_type: {"schema": schema},
                },
            },
            "responses": {
                "200": self._changed(address),
                "204": self.answers.success(
                    "Changed. There is no body because of `Prefer: return=minimal`.", fields
                ),
                **self._problems(address, kinds, method=PATCHING.upper()),
            },
        }

    def _delete(self, address: ResourceAddress) -> Json:
        kinds = [*_LOST_RACE, problems.PreconditionFailed]
        return {
            **self._operation(
                address, f"delete{address.noun}", f"Delete {one(address.shape.record)}{address.of}", "delete"
            ),
            "parameters": parameters.refer("IfMatch", "IfNoneMatch"),
            "responses": {
                "204": self.answers.success("Deleted.", ["Cache-Control", *LIFE, *RATE]),
                **self._problems(address, kinds, method="DELETE"),
            },
        }

    def _options(self, address: ResourceAddress) -> Json:
        patch = ["Accept-Patch"] if "PATCH" in address.methods else []
        name = address.noun if address.item else address.nouns
        where = one(address.shape.record) if address.item else f"the {many(address.shape.record)}"
        return {
            "operationId": f"options{name}",
            "summary": f"Methods of {where}{address.of}",
            "tags": [heading(address.shape.record)],
            **({"deprecated": True} if self.deprecated else {}),
            "security": [],
            "responses": {
                "204": self.answers.success(
                    "The methods of this address.", ["Allow", *patch, "Cache-Control", *LIFE]
                ),
                **self.answers.problems([problems.VersionRetired], LIFE),
                **self.answers.problems([problems.Internal], LIFE, group="Options"),
            },
        }

    def _operation(self, address: ResourceAddress, name: str, summary: str, action: str = "") -> Json:
        """The parts that every operation has."""
        resource = address.shape.resource
        scope = resource.write_scope if action else resource.read_scope
        texts = [_rules(address, action, name), f"Needs the scope `{scope}`.", _user_keys(address, action)]
        return {
            "operationId": name,
            "summary": summary,
            "description": " ".join(text for text in texts if text),
            "tags": [heading(address.shape.record)],
            **({"deprecated": True} if self.deprecated else {}),
            "security": [{SECURITY: [scope]}],
        }

    def _changed(self, address: ResourceAddress) -> Json:
        shape = address.shape
        content = self._content(address, self.schemas.item(shape), self.examples.item(shape))
        carried = [*SHOWN, "Content-Location", *LIFE, *RATE]
        return self.answers.success("The changed item.", carried, content)

    def _content(self, address: ResourceAddress, schema: Json, example: Json) -> Json:
        return {_JSON: {"schema": schema, "example": example}, address.vendor_type: {"schema": schema}}

    def _body(self, address: ResourceAddress) -> Json:
        schema = self.schemas.body(address.shape, under=address.under)
        example = self.examples.body(address.shape, under=address.under)
        return {"required": True, "content": self._content(address, schema, example)}

    def _new_body(self, address: ResourceAddress) -> Json:
        """The body of a POST, which creates an item of the shape or of its alternative."""
        shape = address.shape
        schemas = {each: self.schemas.body(each, under=address.under) for each in self._makes(shape)}
        examples = {each: self.examples.body(each, under=address.under) for each in schemas}
        taken = shape.input(under=address.under)
        content = self._one_of(address, schemas, examples)
        return {"required": not taken.requires_nothing, "content": content}

    def _one_of(
        self, address: ResourceAddress, schemas: dict[Shape, Json], examples: dict[Shape, Json]
    ) -> Json:
        """The content of a body that has one of several shapes."""
        if len(schemas) == 1:
            return self._content(address, schemas[address.shape], examples[address.shape])
        schema = {"oneOf": list(schemas.values())}
        shown = {
            each.record.kind: {"summary": one(each.record), "value": example}
            for each, example in examples.items()
        }
        return {_JSON: {"schema": schema, "examples": shown}, address.vendor_type: {"schema": schema}}

    def _makes(self, shape: Shape) -> list[Shape]:
        """The shapes of the items that a POST can create."""
        instead = shape.resource.alternative
        others = [each for each in self.shapes if each.record is instead]
        return [shape, *others]

    def _problems(self, address: ResourceAddress, kinds: Kinds, method: str = "GET") -> Json:
        """The problems of every operation, of this one, and of the resource's own rules."""
        actions = address.shape.resource.actions
        refused = actions.refuses.get(method, ()) if actions else ()
        missing = [problems.NotFound] if address.item or address.under else []
        every = [*_ADMISSION, *missing, *kinds, *(kind for kind in refused if kind not in kinds)]
        group = PATCHING if method == PATCHING.upper() else ""
        patching = [kind for kind in every if kind is problems.UnsupportedMediaType and group]
        shared = [kind for kind in every if kind not in patching]
        found = {
            **self.answers.problems(shared, LIFE, RATE),
            **self.answers.problems(patching, LIFE, RATE, group),
        }
        return dict(sorted(found.items()))

    def _unique(self, address: ResourceAddress) -> Kinds:
        marks = {mark for each in members(address.shape.record) for mark in each.marks}
        return [problems.Duplicate] if marks & _UNIQUE else []


def _rules(address: ResourceAddress, action: str, name: str) -> str:
    """The docstring of the resource's own action; without one, the rules of every resource."""
    actions, record = address.shape.resource.actions, address.shape.record
    own = None if type(actions) is StandardActions else vars(type(actions)).get(action)
    if own is not None and own.__doc__:
        return inspect.cleandoc(own.__doc__).partition("\n\n")[0].replace("\n", " ")
    if action == "delete" and record.hides_deleted:
        unique = [each.json_name for each in members(record) if each.marks & _UNIQUE]
        freed = f", and its {' and '.join(unique)} can be used again" if unique else ""
        return f"The item answers 404 from then on{freed}; items that refer to it remain."
    return next((text for verb, text in _DESCRIPTIONS.items() if name.startswith(verb)), "")


def _user_keys(address: ResourceAddress, action: str) -> str:
    """What a key that acts for one user may do here."""
    resource = address.shape.resource
    whole = resource.record.is_owner and action == "create"
    if resource.user_keys == "none" or whole or (resource.user_keys == "read" and action):
        return "A key that acts for a user cannot do this."
    if resource.user_keys == "own":
        own = "" if resource.record.is_owner else f"'s {words(resource.record.plural)}"
        return f"A key that acts for a user has access to that user{own} only."
    return ""
