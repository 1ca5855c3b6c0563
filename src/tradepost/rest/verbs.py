"""The methods: what GET, POST, PUT, PATCH and DELETE do with whatever resource they meet.

Order of judgement (RFC 9110, 13.2): who may, whether it is there, whether the conditions hold, whether the
body is right, and only then the action. All that judges a write reads inside the transaction it is part of.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from tradepost.access import idempotency
from tradepost.access.caller import Caller, Permission
from tradepost.access.idempotency import IdempotentRequest
from tradepost.actions.change import Change, Rows
from tradepost.actions.locking import locked
from tradepost.domain.input import Input, Values, parse_object, peek
from tradepost.domain.record import Record
from tradepost.http import conditional
from tradepost.http.answers import ANSWER_CODEC, NO_CACHE, Answer, encode, hash_tag
from tradepost.http.request import Request
from tradepost.perform import Performed, Performer
from tradepost.problems import Invalid, NotFound
from tradepost.resource import Actions
from tradepost.rest import negotiation, pages
from tradepost.rest.merge_patch import merge_patch
from tradepost.rest.shape import Shape, View
from tradepost.storage.database import Row

_VARY = (b"vary", b"Accept, Authorization")
_JSON = b"application/json"
_REPLAYED = (b"idempotency-replayed", b"true")
_NO_STORE = (b"cache-control", b"no-store")
_MINIMAL = (b"preference-applied", b"return=minimal")


@dataclass(slots=True)
class Call:
    """A request that has been let in, and what it is addressed to."""

    request: Request
    caller: Caller
    permission: Permission
    owner: str | None  # the user whose items alone the caller sees; None if it sees all
    shape: Shape
    performer: Performer
    content_type: bytes
    item_id: str | None = None
    parent_id: str | None = None
    alternative: Shape | None = None  # what a POST creates whose body has members of that
    known_parameters: tuple[str, ...] = ()  # query parameters that were heeded on the way

    @property
    def input(self) -> Input:
        """The members that a body at this address may have."""
        return self.shape.input(under=self.parent_id is not None)

    def check_query(self, *known: str) -> dict[str, str]:
        """The query parameters; raises `Malformed` for one that is not known."""
        return self.request.check_query(*known, *self.known_parameters)

    @property
    def actions(self) -> Actions:
        """The actions of the resource."""
        if self.shape.resource.actions is None:
            raise AssertionError(self.shape.resource)
        return self.shape.resource.actions


T = TypeVar("T")

Handler = Callable[[Call], Awaitable[Answer]]


async def get_item(call: Call) -> Answer:
    """200 with the item, or 304."""
    shape, request = call.shape, call.request
    parameters = call.check_query("fields")
    reading = call.performer.database.reading()
    statements = shape.statements
    try:
        if call.parent_id is not None:
            await _check_parent(call, reading)
        if call.owner is None:
            rows = await _item_rows(reading, shape, statements.get, id=call.item_id)
        else:
            rows = await _item_rows(reading, shape, statements.get_owned, id=call.item_id, owner=call.owner)
    finally:
        request.use.add(reading)
    if not rows or not _under(call, rows[0]):
        raise _missing(call.shape.record, call.item_id)
    view = shape.fields(shape.chosen(parameters["fields"])) if "fields" in parameters else shape.view
    return _shown(call, rows, view)


async def get_list(call: Call) -> Answer:
    """200 with a page, or 304."""
    shape, request = call.shape, call.request
    under = None if call.parent_id is None else (shape.resource.under or "", call.parent_id)
    emitter = call.performer.services.emitter
    query = pages.parse(shape, request, call.known_parameters, emitter, owner=call.owner, under=under)
    reading = call.performer.database.reading()
    try:
        if call.parent_id is not None:
            await _check_parent(call, reading)
        rows = await reading.rows(shape.statements.page(query.listing), **query.values)
    finally:
        request.use.add(reading)
    rows, cursor = _cut(shape, query, rows)
    body = encode({"items": (query.view or shape.view).many(rows), "next": cursor})
    tag = hash_tag(body)
    headers = [_VARY, (b"etag", tag), NO_CACHE, (b"link", pages.links(request, query, cursor))]
    if conditional.not_modified(request.headers, tag):
        return Answer(304, headers, b"")
    return Answer(200, [(b"content-type", call.content_type), *headers], body)


async def post(call: Call) -> Answer:
    """201 with the new item and its Location."""
    call.check_query()
    body = await _new_body(call)
    call = _addressed(call, body)
    if call.actions.prepares:
        await call.actions.prepare(call.performer.services, body, call.shape.names)

    async def action(change: Change) -> Answer:
        under = call.parent_id is not None
        if under:
            await _check_parent(call, change.tx)
        fixed = {call.shape.resource.under or "": call.parent_id} if under else {}
        values = await _judged(call, change, lambda: call.input.read(body), None)
        values |= fixed
        rows = await call.actions.create(change, values)
        return _created(call, rows, change.revealed)

    performed = await _perform(call, action, _idempotent(call, body))
    if not performed.replayed:
        return performed.result
    return msgspec.structs.replace(performed.result, headers=[*performed.result.headers, _REPLAYED])


async def put(call: Call) -> Answer:
    """200 with the item as it is now."""
    call.check_query()
    _check_type(call)
    body = await call.request.body()
    if call.actions.prepares:
        await call.actions.prepare(call.performer.services, body, call.shape.names)

    async def values(change: Change, current: Record) -> Values:
        return await _judged(call, change, lambda: call.input.read(body), current)

    return await _replace(call, values)


async def patch(call: Call) -> Answer:
    """200 with the item as it is now, or 204 if the client prefers (RFC 7396, RFC 7240)."""
    call.check_query()
    negotiation.check_body_type(call.request.headers, call.shape.version.number, patch=True)
    body = await call.request.body()
    merge = parse_object(body)
    if call.actions.prepares:
        await call.actions.prepare(call.performer.services, body, call.shape.names)

    async def values(change: Change, current: Record) -> Values:
        return await _merged(call, change, current, merge)

    answer = await _replace(call, values)
    if negotiation.wants_minimal(call.request.headers):
        kept = [
            header for header in answer.headers if header[0] not in (b"content-type", b"content-location")
        ]
        return Answer(204, [*kept, _MINIMAL], b"")
    return answer


async def delete(call: Call) -> Answer:
    """204."""
    call.check_query()

    async def action(change: Change) -> None:
        await call.actions.delete(change, await _locked(call, change))

    await _perform(call, action)
    return Answer(204, [NO_CACHE], b"")


async def _new_body(call: Call) -> bytes:
    """The body of a POST; where nothing has to be said it may be left out."""
    if call.input.requires_nothing:
        body = await call.request.body()
        if body:
            _check_type(call)
        return body or b"{}"
    _check_type(call)
    return await call.request.body()


def _check_type(call: Call) -> None:
    if call.request.headers.get(b"content-type") == _JSON:
        return
    negotiation.check_body_type(call.request.headers, call.shape.version.number, patch=False)


def _addressed(call: Call, body: bytes) -> Call:
    """The call to the record that the body is for.

    A body with members that only the alternative record takes is for that one. Members that are read-only
    here do not count if there are also members that only this record takes: then the body is an item of this
    record as it was read.
    """
    other = call.alternative
    if other is None:
        return call
    names, here, there = peek(body).keys(), call.input.takes, other.input(under=False).takes
    others = names & (there - here)
    if not others or (others <= call.shape.inside.keys() and names & (here - there)):
        return call
    return replace(call, shape=other, alternative=None)


async def _replace(call: Call, values: Callable[[Change, Record], Awaitable[Values]]) -> Answer:
    async def action(change: Change) -> Rows:
        current = await _locked(call, change)
        return await call.actions.replace(change, current, await values(change, current))

    rows = (await _perform(call, action)).result
    return _written(call, 200, rows, [(b"content-location", call.request.path.encode())], {})


async def _perform(
    call: Call, action: Callable[[Change], Awaitable[T]], once: IdempotentRequest[T] | None = None
) -> Performed[T]:
    request = call.request
    return await call.performer.perform(
        call.caller,
        call.permission,
        action,
        source=request.base_url,
        request=once,
        traceparent=request.traceparent,
        use=request.use,
    )


def _idempotent(call: Call, body: bytes) -> IdempotentRequest[Answer] | None:
    """The request under its Idempotency-Key, if it has one. Raises `Malformed`."""
    request = call.request
    if b"idempotency-key" not in request.headers:
        return None
    parts = (request.method.encode(), call.shape.version.name.encode(), request.path.encode(), body)
    return IdempotentRequest(
        caller=call.caller,
        key=idempotency.parse_key(request.headers[b"idempotency-key"]),
        fingerprint=idempotency.fingerprint(parts),
        codec=ANSWER_CODEC,
        now_ms=call.performer.clock.now_ms(),
    )


async def _locked(call: Call, change: Change) -> Record:
    """The item, locked; raises `NotFound`, also for another user's, and `PreconditionFailed`."""
    if call.parent_id is not None:
        await _check_parent(call, change.tx)
    item = await locked(change, call.shape.record, call.item_id or "", call.owner)
    row = call.shape.statements.row(item) if item is not None else None
    if item is None or row is None or not _under(call, row):
        raise _missing(call.shape.record, call.item_id)
    tag = (
        call.shape.tag(row[call.shape.version_at])
        if call.shape.resource.revisable
        else hash_tag(encode(call.shape.view.one([row])))
    )
    conditional.check_write(call.request.headers, tag)
    return item


async def _merged(call: Call, change: Change, current: Record, patch: dict[str, Any]) -> Values:
    """The writable members of the item with a merge patch applied, judged like a full replacement."""
    shape = call.shape
    rows: Rows = [shape.statements.row(current)]
    if shape.embedded:
        rows = await change.tx.rows(shape.statements.get, id=current.id)
    merged = merge_patch(shape.writable(rows), patch)
    # Unknown members must be reported, even if their value is null and the merge would lose them.
    merged |= {name: value for name, value in patch.items() if name not in shape.inside}
    body = shape.input(under=call.parent_id is not None, patching=True)
    return await _judged(call, change, lambda: body.check(merged), current)


async def _judged(call: Call, change: Change, read: Callable[[], Values], current: Record | None) -> Values:
    """The values of a body. Raises `Invalid` with its bad members and those that break a rule."""
    try:
        return read()
    except Invalid as invalid:
        known: Any = invalid.facts["values"]
        if call.parent_id is not None:
            known = known | {call.shape.resource.under or "": call.parent_id}
        more = await call.actions.judge(change, known, current)
        raise Invalid.of([*invalid.errors, *more]) from None


async def _item_rows(reading: Any, shape: Shape, statement: Any, **given: Any) -> Rows:
    if shape.embedded:
        rows: Rows = await reading.rows(statement, **given)
        return rows
    row = await reading.row(statement, **given)
    return [] if row is None else [row]


async def _check_parent(call: Call, reading: Any) -> None:
    """A sub-collection is there if its parent is, for this caller."""
    link = call.shape.resource.parent
    if link is None:
        raise AssertionError(call.shape.resource)
    statements = call.shape.parent_statements
    if call.owner is None:
        found = await reading.row(statements.exists, id=call.parent_id)
    else:
        found = await reading.row(statements.exists_owned, id=call.parent_id, owner=call.owner)
    if found is None:
        raise _missing(link.parent, call.parent_id)


def _under(call: Call, row: Row) -> bool:
    return call.parent_id is None or row[call.shape.under_at] == call.parent_id


def _cut(shape: Shape, query: pages.ListQuery, rows: Rows) -> tuple[Rows, str | None]:
    """The rows of the page without the one item too many, and the cursor behind the last shown."""
    if not shape.embedded or not query.listing.embed:
        if len(rows) <= query.limit:
            return rows, None
        return rows[: query.limit], pages.next_cursor(query, rows[query.limit - 1])
    seen: list[str] = []
    for index, row in enumerate(rows):
        if not seen or seen[-1] != row[0]:
            if len(seen) == query.limit:
                return rows[:index], pages.next_cursor(query, rows[index - 1])
            seen.append(row[0])
    return rows, None


def _shown(call: Call, rows: Rows, view: View) -> Answer:
    shape = call.shape
    tag = (
        shape.tag(rows[0][shape.version_at])
        if shape.resource.revisable
        else hash_tag(encode(shape.view.one(rows)))
    )
    if conditional.not_modified(call.request.headers, tag):
        return Answer(304, [_VARY, (b"etag", tag), NO_CACHE], b"")
    body = encode(view.one(rows))
    return Answer(200, [(b"content-type", call.content_type), _VARY, (b"etag", tag), NO_CACHE], body)


def _created(call: Call, rows: Rows, revealed: dict[str, str]) -> Answer:
    location = f"/{call.shape.version.name}/{call.shape.resource.segment}/{rows[0][0]}"
    if call.parent_id is not None:
        parent = "/".join(call.request.path.rstrip("/").split("/")[-3:])
        location = f"/{call.shape.version.name}/{parent}/{rows[0][0]}"
    return _written(call, 201, rows, [(b"location", location.encode())], revealed)


def _written(
    call: Call, status: int, rows: Rows, headers: list[tuple[bytes, bytes]], revealed: dict[str, str]
) -> Answer:
    body = encode(call.shape.view.one(rows))
    tag = call.shape.tag(rows[0][call.shape.version_at]) if call.shape.resource.revisable else hash_tag(body)
    cached = _NO_STORE if revealed else NO_CACHE
    if revealed:
        body = encode(msgspec.json.decode(body) | revealed)
    return Answer(
        status,
        [(b"content-type", call.content_type), _VARY, (b"etag", tag), cached, *headers],
        body,
        secret=bool(revealed),
    )


def _missing(record: type[Record], item_id: str | None) -> NotFound:
    return NotFound(f"There is no {record.kind.replace('_', ' ')} {item_id}")
