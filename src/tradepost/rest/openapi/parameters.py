"""The parameters in the document: what paths, queries and request headers may say."""

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
    Mark.UNIQUE_FOLDED: ", whatever the case",
    Mark.EVENT_TYPE: ", in full or, like `order.placed`, without the prefix of the service",
}
_INSTANT_RANGES = {"gte": "at or after", "gt": "after", "lte": "at or before", "lt": "before"}


def _query(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _header(name: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": "header", "description": description, "schema": schema}


# No examples here: what shows them in forms would send every one of them.
SHARED: dict[str, Json] = {
    "Limit": _query(
        "limit",
        f"Items on a page; above {MAX_LIMIT} counts as {MAX_LIMIT}.",
        {"type": "integer", "minimum": 1, "default": DEFAULT_LIMIT},
    ),
    "Cursor": _query(
        "cursor",
        "Where the page begins: `next` of the page before. It belongs to the sort and the filters it was "
        "made for, and cannot be used together with `offset`.",
        _TEXT,
    ),
    "Offset": _query(
        "offset",
        "Items to skip. What comes and goes meanwhile shifts such pages; a cursor is not disturbed by it.",
        {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET},
    ),
    "IfMatch": _header(
        "If-Match",
        'ETags such as `"7.3fe2"`, or `*`: only if the item is in this state, else 412. The comparison is '
        "strong.",
        _TEXT,
    ),
    "IfNoneMatch": _header(
        "If-None-Match",
        'ETags such as `"7.3fe2"`, or `*`: only if it is in none of these states; else GET and HEAD answer '
        "304, which costs nothing of the rate, and the others 412.",
        _TEXT,
    ),
    "IdempotencyKey": _header(
        "Idempotency-Key",
        "A name of your choice for this request, bare or as a quoted string: however often it is sent within "
        "24 hours, it happens once, and is answered as it was the first time.",
        {"type": "string", "minLength": 1, "maxLength": _MAX_KEY},
    ),
    "Prefer": _header("Prefer", "`return=minimal` answers 204 without a body.", _TEXT),
    "RequestId": _header(
        "X-Request-Id",
        "Your own id for the request: 1 to 128 letters, digits and `._:/+=-`. Answer and log carry it.",
        _TEXT,
    ),
    "Traceparent": _header(
        "traceparent",
        "W3C trace context; it is carried on in the events that the request causes.",
        _TEXT,
    ),
}


def refer(*names: str) -> list[Json]:
    """References to shared parameters."""
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
    """Which members are shown."""
    return {
        "name": "fields",
        "in": "query",
        "description": "The members to show, separated by commas; `id` is always among them.",
        "style": "form",
        "explode": False,
        "schema": {
            "type": "array",
            "items": {"type": "string", "enum": list(shape.inside)},
        },
    }


def sort(shape: Shape) -> Json:
    """What a list may be sorted by."""
    sortable = [name for name, each in shape.members.items() if Mark.SORTABLE in each.marks]
    values = [f"{sign}{name}" for name in ["id", *sortable] for sign in ("", "-")]
    description = "The member to sort by, a leading `-` for descending; ties are broken by id."
    return _query("sort", description, {"type": "string", "enum": values, "default": "id"})


def filters(shape: Shape) -> Iterator[Json]:
    """Every filter of a list, with its ranges."""
    for name, each in shape.members.items():
        if Mark.FILTERABLE not in each.marks:
            continue
        schema = _compared(each)
        more = "".join(said for mark, said in _MORE.items() if mark in each.marks)
        yield _query(name, f"Only {words(shape.record.plural)} whose `{name}` is this{more}.", schema)
        if Mark.RANGED in each.marks:
            for operator, said in (_INSTANT_RANGES if each.is_instant else _RANGES).items():
                description = f"Only {words(shape.record.plural)} whose `{name}` is {said} this."
                yield _query(f"{name}[{operator}]", description, schema)


def _compared(each: Member) -> Json:
    """What a member is compared with: a value of its type. Bounds would shut out what matches nothing."""
    schema = {key: value for key, value in typed(each).items() if key in ("type", "enum")}
    return {**schema, "format": "date-time"} if each.is_instant else schema
