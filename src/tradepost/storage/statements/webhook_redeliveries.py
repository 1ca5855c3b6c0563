"""Webhook redeliveries: the events to send again, in batches.

A batch examines a bounded number of events, even if few of them match.
"""

from sqlalchemy import and_, bindparam, exists, func, literal_column, not_, select

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import BIG, events, webhook_deliveries, webhook_endpoints, webhook_redeliveries

_r, _e, _d = webhook_redeliveries.c, webhook_endpoints.c, webhook_deliveries.c

UNFINISHED = Statement(
    "locks the first redelivery after an id that is not finished and not locked, and returns it",
    select(
        _r.id,
        _r.endpoint_id,
        _r.to,
        _r.position,
        _r.event_types,
        _r.status,
        _e.event_types.label("wanted"),
        _e.deleted_at,
    )
    .join_from(webhook_redeliveries, webhook_endpoints, _e.id == _r.endpoint_id)
    .where(_r.finished_at.is_(None), _r.id > bindparam("after"))
    .order_by(_r.id)
    .limit(literal_column("1"))
    .with_for_update(of=webhook_redeliveries, skip_locked=True),
)

_EXAMINED = (
    select(events.c.id, events.c.type)
    .where(events.c.id > bindparam("position"), events.c.id < bindparam("before"))
    .order_by(events.c.id)
    .limit(bindparam("limit", type_=BIG))
    .subquery("examined")
)

EVENTS = Statement(
    "the events after a position with ids below `before`",
    select(_EXAMINED.c.id, _EXAMINED.c.type, literal_column("1")).order_by(_EXAMINED.c.id),
)

_TO_ENDPOINT = exists().where(_d.event_id == _EXAMINED.c.id, _d.endpoint_id == bindparam("endpoint_id"))

EVENTS_OF_STATUS = Statement(
    "those events, and whether an endpoint has a delivery of each with one status and none with others",
    select(
        _EXAMINED.c.id,
        _EXAMINED.c.type,
        and_(
            _TO_ENDPOINT.where(_d.status == bindparam("status")),
            not_(_TO_ENDPOINT.where(in_list(_d.status, "unless"))),
        ),
    ).order_by(_EXAMINED.c.id),
)

UNFINISHED_OF = Statement(
    "the number of unfinished redeliveries to an endpoint",
    select(func.count()).where(_r.endpoint_id == bindparam("endpoint_id"), _r.finished_at.is_(None)),
)

ADVANCE = Statement(
    "records the last event that a redelivery has examined, and adds to its number of deliveries",
    webhook_redeliveries.update()
    .where(_r.id == bindparam("at_id"))
    .values(position=bindparam("new_position"), made=_r.made + bindparam("more", type_=BIG)),
)

FINISH = Statement(
    "records that all deliveries of a redelivery were created",
    webhook_redeliveries.update().where(_r.id == bindparam("at_id")).values(finished_at=bindparam("now")),
)

EVENT = Statement(
    "the type of an event that has not been deleted",
    select(events.c.type).where(events.c.id == bindparam("id")),
)
