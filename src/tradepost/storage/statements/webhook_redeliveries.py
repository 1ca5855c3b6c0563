"""Webhook redeliveries: which events are to be sent once more, piece by piece.

A piece looks at a bounded number of events, however few of them are wanted.
"""

from sqlalchemy import and_, bindparam, exists, func, literal_column, not_, select

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import BIG, events, webhook_deliveries, webhook_endpoints, webhook_redeliveries

_r, _e, _d = webhook_redeliveries.c, webhook_endpoints.c, webhook_deliveries.c

UNFINISHED = Statement(
    "the first redelivery behind an id that is not finished and that nobody else holds, kept from others",
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

_LOOKED_AT = (
    select(events.c.id, events.c.type)
    .where(events.c.id > bindparam("position"), events.c.id < bindparam("before"))
    .order_by(events.c.id)
    .limit(bindparam("limit", type_=BIG))
    .subquery("looked_at")
)

EVENTS = Statement(
    "the events behind a position whose ids are below `before`",
    select(_LOOKED_AT.c.id, _LOOKED_AT.c.type, literal_column("1")).order_by(_LOOKED_AT.c.id),
)

_TO_ENDPOINT = exists().where(_d.event_id == _LOOKED_AT.c.id, _d.endpoint_id == bindparam("endpoint_id"))

EVENTS_OF_STATUS = Statement(
    "the same, and whether a delivery of each to an endpoint has a status, and none has one of others",
    select(
        _LOOKED_AT.c.id,
        _LOOKED_AT.c.type,
        and_(
            _TO_ENDPOINT.where(_d.status == bindparam("status")),
            not_(_TO_ENDPOINT.where(in_list(_d.status, "unless"))),
        ),
    ).order_by(_LOOKED_AT.c.id),
)

UNFINISHED_OF = Statement(
    "how many redeliveries to an endpoint are not finished",
    select(func.count()).where(_r.endpoint_id == bindparam("endpoint_id"), _r.finished_at.is_(None)),
)

ADVANCE = Statement(
    "notes up to which event a redelivery has come, and how many more deliveries were made",
    webhook_redeliveries.update()
    .where(_r.id == bindparam("at_id"))
    .values(position=bindparam("new_position"), made=_r.made + bindparam("more", type_=BIG)),
)

FINISH = Statement(
    "notes that all deliveries of a redelivery were made",
    webhook_redeliveries.update().where(_r.id == bindparam("at_id")).values(finished_at=bindparam("now")),
)

EVENT = Statement(
    "the type of an event that is still kept", select(events.c.type).where(events.c.id == bindparam("id"))
)
