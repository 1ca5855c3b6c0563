"""The parameters in the document: those of paths, queries and request headers."""

from collections.abc import Iterator

from tradepost.domain.record import Mark, Member
from tradepost.rest.openapi.examples import sample_id
from tradepost.rest.openapi.schemas import Json, typed
from tradepost.rest.openapi.words import words
from tradepost.rest.pages import DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET
from tradepost.rest.shape import Shape

_TEXT: Json = {"type": "string"}
_MAX_KEY = 255
_RANGES = {"gte": "at least", "gt": "more than", "lte": "at most", "lt": "less than"}
_MORE = {
    Mark.UNIQUE_FOLDED: ", regardless of case",
    Mark.EVENT_TYPE: ", in full or without the service's prefix, such as `order.placed`",
}
_INSTANT_RANGES = {"gte": "at or after", "gt": "after", "lte": "at or before", "lt": "before"}


def _query(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _header(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": "header", "description": description, "schema": schema}


# No examples here: documentation tools would fill them into forms and send all of them.
SHARED: dict[str, Json] = {
    "Limit": _query(
        "limit",
        f"Items per page; values above {MAX_LIMIT} count as {MAX_LIMIT}.",
        {"type": "integer", "minimum": 1, "default": DEFAULT_LIMIT},
    ),
    "Cursor": _query(
        "cursor",
        "Start of the page: `next` of the previous page. A cursor is valid only for the same sort and "
        "filters, and cannot be combined with `offset`.",
        _TEXT,
    ),
    "Offset": _query(
        "offset",
        "Items to skip. Items added or deleted between requests shift such pages, but do not affect cursors.",
        {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET},
    ),
    "IfMatch": _header(
        "If-Match",
        'ETags such as `"7.3fe2"`, or `*`. If none of them is the current one, the response is 412. The '
        "comparison is strong.",
        _TEXT,
    ),
    "IfNoneMatch": _header(
        "If-None-Match",
        'ETags such as `"7.3fe2"`, or `*`. If one of them is the current one, GET and HEAD answer 304, which '
        "does not count against the rate limit, and other methods 412.",
        _TEXT,
    ),
    "IdempotencyKey": _header(
        "Idempotency-Key",
        "A key of your choice for this request, bare or as a quoted string. However often the request is "
        "sent within 24 hours, it takes effect once, and every response is the first one.",
        {"type": "string", "minLength": 1, "maxLength": _MAX_KEY},
    ),
    "Prefer": _header("Prefer", "`return=minimal` answers 204 without a body.", _TEXT),
    "RequestId": _header(
        "X-Request-Id",
        "Your own id for the request: 1 to 128 letters, digits and `._:/+=-`. The response and log have it.",
        _TEXT,
    ),
    "Traceparent": _header(
        "traceparent",
        "W3C trace context; it is passed on in the events that the request causes.",
        _TEXT,
    ),
}


def refer(*names: str) -> list[Json]:
    """References to the shared parameters with these names."""
    return [{"$ref": f"#/components/parameters/{name}"} for name in names]


def path(name: str, kind: str) -> Json:
    """An id in a path."""
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The id of the {words(kind)}.",
        "schema": _TEXT,
        "example": sample_id(kind),
    }


def fields(shape: Shape) -> Json:
    """The parameter that selects the members to return."""
    return {
        "name": "fields",
        "in": "query",
        "description": "The members to return, separated by commas; `id` is always included.",
        "style": "form",
        "explode": False,
        "schema": {
            "type": "array",
            "items": {"type": "string", "enum": list(shape.inside)},
        },
    }


def sort(shape: Shape) -> Json:
    """The parameter that selects the order of a list."""
    sortable = [name for name, each in shape.members.items() if Mark.SORTABLE in each.marks]
    values = [f"{sign}{name}" for name in ["id", *sortable] for sign in ("", "-")]
    description = "The member to sort by, with a leading `-` for descending; ties are broken by id."
    return _query("sort", description, {"type": "string", "enum": values, "default": "id"})


def filters(shape: Shape) -> Iterator[Json]:
    """The parameters for every filter of a list and its ranges."""
    for name, each in shape.members.items():
        if Mark.FILTERABLE not in each.marks:
            continue
        schema = _compared(each)
        more = "".join(text for mark, text in _MORE.items() if mark in each.marks)
        yield _query(name, f"Only {words(shape.record.plural)} with this `{name}`{more}.", schema)
        if Mark.RANGED in each.marks:
            for operator, relation in (_INSTANT_RANGES if each.is_instant else _RANGES).items():
                description = f"Only {words(shape.record.plural)} whose `{name}` is {relation} this value."
                yield _query(f"{name}[{operator}]", description, schema)


def _compared(each: Member) -> Json:
    """The schema of a value to compare a member with. It has no bounds: values beyond them match nothing."""
    schema = {key: value for key, value in typed(each).items() if key in ("type", "enum")}
    return {**schema, "format": "date-time"} if each.is_instant else schema
