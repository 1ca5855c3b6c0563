"""Webhook redeliveries: the events of a stretch of time sent to an endpoint once more.

A request notes what is wanted; the deliveries are made afterwards in pieces, each in a transaction of its
own, so that however many they are, nobody waits for them. Events are found by their ids, which ascend by
when they happened; those of the last moments are left until none of them can be written any more.
"""

from typing import Any, NamedTuple

import msgspec

from tradepost.actions.change import Change, Rows
from tradepost.actions.standard import StandardActions
from tradepost.actions.webhook_deliveries import endpoint_errors
from tradepost.actions.webhook_endpoints import patterns, unknown_types
from tradepost.clock import parse_instant
from tradepost.domain import ids
from tradepost.domain.input import Values
from tradepost.domain.webhook_redelivery import WebhookRedelivery
from tradepost.events.outbox import delivery, patterns_of
from tradepost.problems import Conflict, MemberError
from tradepost.storage.statements import webhook_deliveries, webhook_redeliveries

_UNFINISHED = 10  # redeliveries to an endpoint at a time
_UNLESS = {"ABANDONED": ["DELIVERED", "PENDING"]}  # it was not delivered since, nor is about to be


class WebhookRedeliveries(StandardActions[WebhookRedelivery]):
    """The actions of webhook redeliveries."""

    def __init__(self) -> None:
        super().__init__(WebhookRedelivery)

    async def judge(
        self, change: Change, values: Values, current: WebhookRedelivery | None
    ) -> list[MemberError]:
        errors = await super().judge(change, values, current) or _period_errors(values, change.now_ms)
        return [
            *await endpoint_errors(change, values.get("endpoint_id")),
            *errors,
            *unknown_types(change.services.emitter, values.get("event_types")),
        ]

    async def create(self, change: Change, values: Values) -> Rows:
        """Sends the events of a period to an endpoint again. They are sent gradually, after newer events;
        `made` and `finishedAt` show the progress."""
        await self.check(change, values, None)
        unfinished = await change.tx.row(
            webhook_redeliveries.UNFINISHED_OF, endpoint_id=values["endpoint_id"]
        )
        if unfinished and unfinished[0] >= _UNFINISHED:
            message = f"{_UNFINISHED} redeliveries to this endpoint are not finished: wait until one is"
            raise Conflict(message)
        stored = self.statements.stored(values)
        stored["to"] = min(stored["to"] or change.now_at, change.now_at)
        item = WebhookRedelivery(id=change.new_id(), made=0, created_at=change.now_at, **stored)
        change.queued = True
        return [await change.add(item, position=ids.floor(parse_instant(item.from_)))]


class _Unfinished(NamedTuple):
    """A redelivery that is not finished, and its endpoint."""

    id: str
    endpoint_id: str
    to: str
    position: str
    event_types: str | None
    status: str | None
    wanted: str
    deleted_at: str | None


class Piece(NamedTuple):
    """A piece of a redelivery; `moved` tells whether it brought the redelivery forward."""

    id: str
    moved: bool


class _Event(NamedTuple):
    """An event of the period; `matches` tells whether its earlier deliveries ended as the request says."""

    id: str
    type: str
    matches: bool


async def expand(change: Change, after: str, limit: int) -> Piece | None:
    """Queues the next `limit` events of the first redelivery behind an id; None if there is none."""
    row = await change.tx.row(webhook_redeliveries.UNFINISHED, after=after)
    if row is None:
        return None
    one = _Unfinished(*row)
    stable_ms = change.now_ms - change.tx.max_commit_delay_ms
    before_ms = min(parse_instant(one.to), stable_ms)
    seen = [] if one.deleted_at else await _events(change, one, before_ms, limit)
    rows = _deliveries(change, one, seen)
    if rows:
        await change.tx.many(webhook_deliveries.QUEUE, rows)
        change.queued = True
    if seen:
        position = seen[-1].id
        await change.tx.run(webhook_redeliveries.ADVANCE, at_id=one.id, new_position=position, more=len(rows))
    finished = len(seen) < limit and (parse_instant(one.to) <= stable_ms or one.deleted_at is not None)
    if finished:
        await change.tx.run(webhook_redeliveries.FINISH, at_id=one.id, now=change.now_at)
    return Piece(one.id, finished or bool(seen))


async def _events(change: Change, one: _Unfinished, before_ms: int, limit: int) -> list[_Event]:
    """The next events that happened before an instant."""
    period = {"position": one.position, "before": ids.floor(before_ms), "limit": limit}
    if one.status is None:
        rows = await change.tx.rows(webhook_redeliveries.EVENTS, **period)
    else:
        status = {"endpoint_id": one.endpoint_id, "status": one.status, "unless": _UNLESS.get(one.status, [])}
        rows = await change.tx.rows(webhook_redeliveries.EVENTS_OF_STATUS, **period, **status)
    return [_Event(*row) for row in rows]


def _deliveries(change: Change, one: _Unfinished, events: list[_Event]) -> list[dict[str, Any]]:
    emitter = change.services.emitter
    wanted = patterns(emitter, msgspec.json.decode(one.event_types or one.wanted))
    columns = {"later": 2, "redelivery_id": one.id}
    return [
        delivery(
            change.new_id(), one.endpoint_id, change.now_at, event_id=each.id, event_type=each.type, **columns
        )
        for each in events
        if each.matches and not wanted.isdisjoint(patterns_of(each.type.removeprefix(f"{emitter.prefix}.")))
    ]


def _period_errors(values: Values, now_ms: int) -> list[MemberError]:
    """The errors of a period that is empty."""
    begins, ends = values.get("from_"), values.get("to")
    if begins is None:
        return []
    if ends is not None and parse_instant(ends) <= parse_instant(begins):
        return [MemberError(("to",), "must be after from", "out_of_range")]
    if parse_instant(begins) >= now_ms:
        return [MemberError(("from_",), "must be in the past", "out_of_range")]
    return []
