"""Lists: their query parameters, their cursors and the links to other pages.

A cursor holds the position of the last item shown, and a hash of the sort and the filters that it is valid
for; it is opaque to clients.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, cast
from urllib.parse import quote, urlencode

import msgspec
import xxhash
from msgspec import Meta

from tradepost.clock import instant, parse_instant
from tradepost.domain import ids
from tradepost.domain.expected import expected
from tradepost.domain.money import UNITS
from tradepost.domain.record import Mark, Member
from tradepost.events.outbox import Emitter
from tradepost.http.request import Request
from tradepost.problems import Malformed
from tradepost.rest.shape import Shape, View
from tradepost.storage.database import Row
from tradepost.storage.record_statements import Condition, Listing, Operator
from tradepost.storage.tables import folded

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_OFFSET = 10_000
PAGING = ("limit", "cursor", "offset", "sort", "fields")
_FILTER = re.compile(r"(\w+)(?:\[(gte|gt|lte|lt)\])?")
_MAX_INTEGER = 2**63 - 1
_BAD_CURSOR = "cursor is not valid; use the one in next, or start without a cursor"
_quoted = lru_cache(1024)(quote)


@dataclass
class ListQuery:
    """The parsed query of a list.

    `listing` and `values` are the statement's shape and parameters, `parameters` the query as the client sent
    it. `mark` is the hash of sort and filters, `sort_at` the position of the sort key in a row.
    """

    listing: Listing
    limit: int
    values: dict[str, Any]
    parameters: dict[str, str]
    offset: int | None = None
    view: View | None = None
    mark: str = ""
    sort_at: int = 0
    fixed: dict[str, Any] = field(default_factory=dict)


def parse(
    shape: Shape,
    request: Request,
    known: tuple[str, ...],
    emitter: Emitter,
    *,
    owner: str | None,
    under: tuple[str, str] | None,
) -> ListQuery:
    """The parsed query of a list. Raises `Malformed` for a parameter that is unknown or not valid.

    `owner` restricts the list to the items of one user, `under` (foreign key, id) to those of one parent.
    """
    parameters = request.query()
    if "cursor" in parameters and "offset" in parameters:
        message = "cursor and offset cannot be used together"
        raise Malformed(message)
    sort, descending = _sort(shape, parameters.get("sort"))
    conditions, values = _conditions(shape, parameters, (*PAGING, *known), emitter)
    if under is not None:
        conditions.append(Condition(under[0], "eq", "under"))
        values["under"] = under[1]
    if owner is not None:
        values["owner"] = owner
    chosen = shape.chosen(parameters["fields"]) if "fields" in parameters else None
    mark = _mark(shape, sort, descending, conditions, values)
    offset = _integer(parameters, "offset", 0, MAX_OFFSET) if "offset" in parameters else None
    query = ListQuery(
        listing=Listing(
            sort=sort,
            descending=descending,
            after="cursor" in parameters,
            offset=bool(offset),
            conditions=tuple(sorted(conditions)),
            owned=owner is not None,
            embed=chosen is None or (shape.embedded is not None and shape.embedded.name in chosen),
        ),
        limit=_limit(parameters["limit"]) if "limit" in parameters else DEFAULT_LIMIT,
        values=values,
        parameters=parameters,
        offset=offset,
        view=shape.fields(chosen) if chosen is not None else None,
        mark=mark,
        sort_at=shape.statements.names.index("id" if sort == "created_at" else sort),
    )
    if "cursor" in parameters:
        query.values |= _position(parameters["cursor"], mark, shape, sort)
    if offset:
        query.values["offset"] = offset
    query.values["limit"] = query.limit + 1  # the extra row shows whether there is a next page
    return query


def next_cursor(query: ListQuery, last: Row) -> str:
    """The cursor of the page that starts after `last`, the last row of a page."""
    position = [query.mark, last[query.sort_at], last[0]]
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).rstrip(b"=").decode()


def links(request: Request, query: ListQuery, cursor: str | None) -> bytes:
    """The `Link` field (RFC 8288): next and first, and prev where pages are counted; absolute URLs."""
    encoded = urlencode([each for each in query.parameters.items() if each[0] not in ("cursor", "offset")])
    path = request.base_url + _quoted(request.path)
    pages = []
    if cursor is not None:
        pages.append(_link(path, encoded, f"cursor={cursor}", "next"))
    pages.append(_link(path, encoded, "" if query.offset is None else "offset=0", "first"))
    if query.offset:
        pages.append(_link(path, encoded, f"offset={max(0, query.offset - query.limit)}", "prev"))
    return ", ".join(pages).encode()


def _link(path: str, others: str, position: str, relation: str) -> str:
    parameters = f"{others}&{position}" if others and position else others or position
    return f'<{path}?{parameters}>; rel="{relation}"' if parameters else f'<{path}>; rel="{relation}"'


def _sort(shape: Shape, spelled: str | None) -> tuple[str, bool]:
    if spelled is None:
        return "id", False
    descending = spelled.startswith("-")
    outside = spelled.removeprefix("-")
    member = shape.members.get(outside)
    if outside == "id" or (member is not None and Mark.SORTABLE in member.marks):
        return shape.inside[outside], descending
    able = [name for name, each in shape.members.items() if Mark.SORTABLE in each.marks]
    message = f"sort must be one of {', '.join(['id', *able])}, with a leading - for descending"
    raise Malformed(message)


def _conditions(
    shape: Shape, parameters: Mapping[str, str], known: tuple[str, ...], emitter: Emitter
) -> tuple[list[Condition], dict[str, Any]]:
    conditions: list[Condition] = []
    values: dict[str, Any] = {}
    for name, text in parameters.items():
        if name in known:
            continue
        spelled = _FILTER.fullmatch(name)
        member = shape.members.get(spelled[1]) if spelled else None
        if spelled is None or member is None or Mark.FILTERABLE not in member.marks:
            message = f"There is no query parameter {name}"
            raise Malformed(message)
        operator = cast("Operator", spelled[2] or "eq")
        if operator != "eq" and Mark.RANGED not in member.marks:
            message = f"{spelled[1]} cannot be filtered with [{operator}]"
            raise Malformed(message)
        for column, compared, value in _compared(member, name, operator, text, emitter):
            place = f"f{len(values)}"
            conditions.append(Condition(column, compared, place))
            values[place] = value
    return conditions, values


def _compared(
    member: Member, name: str, operator: Operator, text: str, emitter: Emitter
) -> list[tuple[str, Operator, Any]]:
    """A filter as comparisons of columns. `createdAt` compares ids; case-folded members compare folded."""
    if member.name == "created_at":
        return _created(operator, _instant(name, text))
    if member.is_instant:
        return [(member.name, operator, instant(_instant(name, text)))]
    if Mark.MONEY in member.marks:
        return [(member.name, operator, _amount(name, text))]
    if member.is_integer:
        return [(member.name, operator, _integer({name: text}, name, -_MAX_INTEGER, _MAX_INTEGER))]
    if member.values and text not in member.values:
        message = f"{name} must be one of {', '.join(member.values)}"
        raise Malformed(message)
    if Mark.UNIQUE_FOLDED in member.marks:
        return [(folded(member), operator, text.casefold())]
    if Mark.EVENT_TYPE in member.marks:
        text = _full_type(emitter, text)
    return [(member.name, operator, text)]


def _full_type(emitter: Emitter, text: str) -> str:
    """A type of event under its prefix. What is none of ours stays as it is: the log may be older than we."""
    short = {name for each in emitter.types.values() for name, _ in each.names}
    return f"{emitter.prefix}.{text}" if text in short else text


def _created(operator: Operator, ms: int) -> list[tuple[str, Operator, Any]]:
    match operator:
        case "gte":
            return [("id", "gte", ids.floor(ms))]
        case "gt":
            return [("id", "gte", ids.floor(ms + 1))]
        case "lte":
            return [("id", "lt", ids.floor(ms + 1))]
        case "lt":
            return [("id", "lt", ids.floor(ms))]
        case _:
            return [("id", "gte", ids.floor(ms)), ("id", "lt", ids.floor(ms + 1))]


def _instant(name: str, text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as error:
        message = f"{name} {error}"
        raise Malformed(message) from None


def _amount(name: str, text: str) -> int:
    try:
        units = Decimal(text) * UNITS
        exact = units.is_finite() and units == units.to_integral_value() and abs(units) <= _MAX_INTEGER
    except ArithmeticError:
        exact = False
    if not exact:
        message = f"{name} must be an amount such as 19.99"
        raise Malformed(message)
    return int(units)


def _limit(text: str) -> int:
    """The limit; values above the maximum count as the maximum."""
    if text.isascii() and text.isdigit() and len(text.lstrip("0")) > len(str(MAX_LIMIT)):
        return MAX_LIMIT
    return min(MAX_LIMIT, _integer({"limit": text}, "limit", 1, _MAX_INTEGER))


def _integer(parameters: Mapping[str, str], name: str, lowest: int, highest: int) -> int:
    text = parameters[name]
    if re.fullmatch(r"-?[0-9]{1,19}", text) and lowest <= int(text) <= highest:
        return int(text)
    least = None if lowest == -_MAX_INTEGER else lowest
    most = None if highest == _MAX_INTEGER else highest
    message = f"{name} must be {expected(Annotated[int, Meta(ge=least, le=most)])}"
    raise Malformed(message)


def _mark(
    shape: Shape, sort: str, descending: bool, conditions: Sequence[Condition], values: Mapping[str, Any]
) -> str:
    filters = sorted((each.column, each.operator, values[each.name]) for each in conditions)
    return xxhash.xxh32_hexdigest(
        repr((shape.record.kind, sort, descending, filters, values.get("owner"))).encode()
    )


def _position(cursor: str, mark: str, shape: Shape, sort: str) -> dict[str, Any]:
    key_type: Any = (
        int if any(each.name == sort and each.is_integer for each in shape.members.values()) else str
    )
    try:
        raw = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        made_for, key, last_id = msgspec.json.decode(raw, type=tuple[str, key_type, str])
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise Malformed(_BAD_CURSOR) from None
    if made_for != mark:
        message = "cursor belongs to another sort or other filters; repeat those, or start without a cursor"
        raise Malformed(message)
    if "\x00" in last_id or (abs(key) > _MAX_INTEGER if isinstance(key, int) else "\x00" in key):
        raise Malformed(_BAD_CURSOR)
    return {"after_key": key, "after_id": last_id}
