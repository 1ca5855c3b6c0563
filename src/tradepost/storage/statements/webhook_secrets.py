"""Webhook secrets: stored encrypted, and retired according to the results of deliveries."""

from sqlalchemy import bindparam, case, null, select, text

from tradepost.storage.statement import Statement
from tradepost.storage.tables import BIG, webhook_secrets

_s = webhook_secrets.c

SEALED = Statement(
    "the encrypted values of all secrets",
    select(_s.sealed).where(_s.sealed.is_not(None)),
)

OF_STATUS = Statement(
    "the secret of an endpoint that has this status",
    select(_s.id).where(_s.endpoint_id == bindparam("endpoint_id"), _s.status == bindparam("status")),
)

BEGIN_RETIRING = Statement(
    "starts to retire the current secret of an endpoint",
    webhook_secrets.update()
    .where(_s.endpoint_id == bindparam("at_endpoint_id"), _s.status == text("'CURRENT'"))
    .values(status="RETIRING", version=_s.version + 1),
)

RETIRE = Statement(
    "retires a secret that is retiring, and deletes its value",
    webhook_secrets.update()
    .where(_s.id == bindparam("at_id"), _s.status == text("'RETIRING'"))
    .values(status="RETIRED", sealed=null(), retired_at=bindparam("now"), version=_s.version + 1),
)

RETIRE_ALL = Statement(
    "retires all secrets of an endpoint, and deletes their values",
    webhook_secrets.update()
    .where(_s.endpoint_id == bindparam("at_endpoint_id"), _s.status != text("'RETIRED'"))
    .values(status="RETIRED", sealed=null(), retired_at=bindparam("now"), version=_s.version + 1),
)

NEEDED = Statement(
    "records a delivery that was confirmed with the retiring secret only",
    webhook_secrets.update()
    .where(_s.id == bindparam("at_id"))
    .values(confirmed=text("0"), needed=_s.needed + 1),
)

CONFIRMED = Statement(
    "records a delivery that was confirmed without the retiring secret",
    webhook_secrets.update().where(_s.id == bindparam("at_id")).values(confirmed=_s.confirmed + 1),
)

RETIRE_CONFIRMED = Statement(
    "retires a secret after enough deliveries in a row without it, or more if it was needed in between",
    webhook_secrets.update()
    .where(
        _s.id == bindparam("at_id"),
        _s.status == text("'RETIRING'"),
        _s.confirmed
        >= case((_s.needed == 0, bindparam("enough", type_=BIG)), else_=bindparam("enough_again", type_=BIG)),
    )
    .values(status="RETIRED", sealed=null(), retired_at=bindparam("now"), version=_s.version + 1),
)
