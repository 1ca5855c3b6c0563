"""Webhook redeliveries: the events of a stretch of time sent to an endpoint once more.

A request notes what is wanted; the deliveries are made afterwards in pieces, each in a transaction of its
own, so that however many they are, nobody waits for them. Events are found by their ids, which ascend by
when they happened; those of the last moments are left until none of them can be written any more.
"""

from typing import Any, NamedTuple

import msgspec

from tradepost.actions.change import Change, Rows
from tradepost.actions.plain import Plain
from tradepost.actions.webhook_deliveries import endpoint_errors
from tradepost.actions.webhook_endpoints import patterns, unknown_types
from tradepost.clock import parse_instant
from tradepost.domain import ids
from tradepost.domain.input import Values
from tradepost.domain.webhook_redelivery import WebhookRedelivery
from tradepost.events.outbox import delivery, patterns_of
from tradepost.problems import Conflict, MemberError
from tradepost.storage.database import Row
from tradepost.storage.statements import webhook_deliveries, webhook_redeliveries

_UNFINISHED = 10  # redeliveries to an endpoint at a time
_UNLESS = {"ABANDONED": ["DELIVERED", "PENDING"]}  # it was not delivered since, nor is about to be


class WebhookRedeliveries(Plain):
    """The actions of webhook redeliveries."""

    def __init__(self) -> None:
        super().__init__(WebhookRedelivery)

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        wrong = await super().judge(change, values, current)
        if not wrong:
            wrong = _order_errors(values, change.now_ms)
        return [
            *await endpoint_errors(change, values.get("endpoint_id")),
            *wrong,
            *unknown_types(change.means.emitter, values.get("event_types")),
        ]

    async def create(self, change: Change, values: Values) -> Rows:
        """Sends the events of a stretch of time to an endpoint once more. They go out by and by, behind what
        happens meanwhile; `made` and `finishedAt` say how far it is."""
        await self._refuse(change, values, None)
        unfinished = await change.tx.row(
            webhook_redeliveries.UNFINISHED_OF, endpoint_id=values["endpoint_id"]
        )
        if unfinished and unfinished[0] >= _UNFINISHED:
            message = f"{_UNFINISHED} redeliveries to this endpoint are not finished: wait until one is"
            raise Conflict(message)
        given = self.kept(values)
        made = {
            **given,
            "id": change.new_id(),
            "to": min(given["to"] or change.now, change.now),
            "made": 0,
            "position": ids.floor(parse_instant(given["from_"])),
            "created_at": change.now,
        }
        change.queued = True
        return [await change.add(WebhookRedelivery, made)]


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
    """A piece of a redelivery; `moved` says that it was not for nothing."""

    id: str
    moved: bool


async def expand(change: Change, after: str, limit: int) -> Piece | None:
    """Makes a piece of the first redelivery behind an id, its next `limit` events; None if there is none."""
    found = await change.tx.row(webhook_redeliveries.UNFINISHED, after=after)
    if found is None:
        return None
    one = _Unfinished(*found)
    settled = change.now_ms - change.tx.late_ms
    upto = min(parse_instant(one.to), settled)
    looked_at = [] if one.deleted_at else await _events(change, one, upto, limit)
    rows = _deliveries(change, one, looked_at)
    if rows:
        await change.tx.many(webhook_deliveries.QUEUE, rows)
        change.queued = True
    if looked_at:
        position = looked_at[-1][0]
        await change.tx.run(webhook_redeliveries.ADVANCE, at_id=one.id, new_position=position, more=len(rows))
    finished = len(looked_at) < limit and (parse_instant(one.to) <= settled or one.deleted_at is not None)
    if finished:
        await change.tx.run(webhook_redeliveries.FINISH, at_id=one.id, now=change.now)
    return Piece(one.id, finished or bool(looked_at))


async def _events(change: Change, one: _Unfinished, upto: int, limit: int) -> list[Row]:
    """The next events that happened before an instant (ms): id, type, and whether one is wanted by what
    became of it before."""
    stretch = {"position": one.position, "before": ids.floor(upto), "limit": limit}
    if one.status is None:
        return await change.tx.rows(webhook_redeliveries.EVENTS, **stretch)
    ended = {"endpoint_id": one.endpoint_id, "status": one.status, "unless": _UNLESS.get(one.status, [])}
    return await change.tx.rows(webhook_redeliveries.EVENTS_OF_STATUS, **stretch, **ended)


def _deliveries(change: Change, one: _Unfinished, looked_at: list[Row]) -> list[dict[str, Any]]:
    emitter = change.means.emitter
    wanted = patterns(emitter, msgspec.json.decode(one.event_types or one.wanted))
    given = {"later": 2, "redelivery_id": one.id}
    return [
        delivery(
            change.new_id(), one.endpoint_id, change.now, event_id=event_id, event_type=full_name, **given
        )
        for event_id, full_name, ended in looked_at
        if ended and not wanted.isdisjoint(patterns_of(full_name.removeprefix(f"{emitter.prefix}.")))
    ]


def _order_errors(values: Values, now: int) -> list[MemberError]:
    """An empty stretch is a mistake."""
    begins, ends = values.get("from_"), values.get("to")
    if begins is None:
        return []
    if ends is not None and parse_instant(ends) <= parse_instant(begins):
        return [MemberError(("to",), "is not after from", "out_of_range")]
    if parse_instant(begins) >= now:
        return [MemberError(("from_",), "is not in the past", "out_of_range")]
    return []
