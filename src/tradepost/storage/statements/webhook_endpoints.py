"""Webhook endpoints from the viewpoint of deliveries: locked, failing, disabled, subscribed."""

from sqlalchemy import bindparam, null, or_, select, text

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import webhook_endpoints, webhook_secrets, webhook_subscriptions

_e, _s = webhook_endpoints.c, webhook_secrets.c

LOCK = Statement(
    "locks those of these endpoints that are enabled and not locked, and returns them with their secrets",
    select(_e.id, _e.url, _e.content_type, _e.failing_since, _e.failed_at, _s.id, _s.status, _s.sealed)
    .join_from(webhook_endpoints, webhook_secrets, _s.endpoint_id == _e.id)
    .where(
        in_list(_e.id, "ids"),
        _e.status == text("'ENABLED'"),
        _e.deleted_at.is_(None),
        _s.status != text("'RETIRED'"),
    )
    .with_for_update(key_share=True, of=webhook_endpoints, skip_locked=True),
)

FAILING = Statement(
    "records the start of a series of failures, unless there is one with a failure since an instant",
    webhook_endpoints.update()
    .where(
        _e.id == bindparam("at_id"),
        or_(_e.failing_since.is_(None), _e.failed_at < bindparam("quiet_since")),
    )
    .values(failing_since=bindparam("now"), failed_at=bindparam("now")),
)

STILL_FAILING = Statement(
    "records another failure of an endpoint",
    webhook_endpoints.update().where(_e.id == bindparam("at_id")).values(failed_at=bindparam("now")),
)

WORKING = Statement(
    "records that an endpoint works",
    webhook_endpoints.update()
    .where(_e.id == bindparam("at_id"))
    .values(failing_since=null(), failed_at=null()),
)

DISABLE = Statement(
    "disables an endpoint that has been failing since before an instant",
    webhook_endpoints.update()
    .where(
        _e.id == bindparam("at_id"),
        _e.status == text("'ENABLED'"),
        _e.failing_since <= bindparam("before"),
    )
    .values(
        status="DISABLED",
        disabled_reason=bindparam("reason"),
        version=_e.version + 1,
        updated_at=bindparam("now"),
    ),
)

SUBSCRIBE = Statement(
    "subscribes an endpoint to a pattern of event types",
    webhook_subscriptions.insert().values(pattern=bindparam("pattern"), endpoint_id=bindparam("endpoint_id")),
)

UNSUBSCRIBE = Statement(
    "removes all subscriptions of an endpoint",
    webhook_subscriptions.delete().where(webhook_subscriptions.c.endpoint_id == bindparam("at_endpoint_id")),
)

SUBSCRIPTIONS = Statement(
    "the subscriptions to these patterns",
    select(webhook_subscriptions.c.pattern, webhook_subscriptions.c.endpoint_id).where(
        in_list(webhook_subscriptions.c.pattern, "patterns")
    ),
)
