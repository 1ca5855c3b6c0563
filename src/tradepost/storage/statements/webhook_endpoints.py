"""Webhook endpoints as those see them who deliver: held, signed for, failing, disabled."""

from sqlalchemy import bindparam, null, or_, select, text

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import webhook_endpoints, webhook_secrets, webhook_subscriptions

_e, _s = webhook_endpoints.c, webhook_secrets.c

HOLD = Statement(
    "enabled endpoints that nobody else holds, kept from others; with the secrets that may sign for them",
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
    "notes that an endpoint fails from now on, if it did not, or did not since an instant",
    webhook_endpoints.update()
    .where(
        _e.id == bindparam("at_id"),
        or_(_e.failing_since.is_(None), _e.failed_at < bindparam("quiet_since")),
    )
    .values(failing_since=bindparam("now"), failed_at=bindparam("now")),
)

STILL_FAILING = Statement(
    "notes that an endpoint still fails",
    webhook_endpoints.update().where(_e.id == bindparam("at_id")).values(failed_at=bindparam("now")),
)

WORKING = Statement(
    "notes that an endpoint does not fail",
    webhook_endpoints.update()
    .where(_e.id == bindparam("at_id"))
    .values(failing_since=null(), failed_at=null()),
)

DISABLE = Statement(
    "disables an endpoint that has failed since before an instant",
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
    "has an endpoint told of what a pattern names",
    webhook_subscriptions.insert().values(pattern=bindparam("pattern"), endpoint_id=bindparam("endpoint_id")),
)

UNSUBSCRIBE = Statement(
    "has an endpoint told of nothing",
    webhook_subscriptions.delete().where(webhook_subscriptions.c.endpoint_id == bindparam("at_endpoint_id")),
)

SUBSCRIPTIONS = Statement(
    "which endpoints are told of any of these patterns",
    select(webhook_subscriptions.c.pattern, webhook_subscriptions.c.endpoint_id).where(
        in_list(webhook_subscriptions.c.pattern, "patterns")
    ),
)
