"""Webhook deliveries by request: an event sent to an endpoint again, or a ping to test the endpoint."""

from operator import itemgetter
from typing import Any

from tradepost.actions.change import Change, Rows
from tradepost.actions.standard import StandardActions
from tradepost.domain.input import Values
from tradepost.domain.webhook_delivery import WebhookDelivery
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.events.event_type import PING
from tradepost.events.outbox import delivery
from tradepost.problems import MemberError
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import webhook_deliveries, webhook_redeliveries


class WebhookDeliveries(StandardActions[WebhookDelivery]):
    """The actions of webhook deliveries."""

    def __init__(self) -> None:
        super().__init__(WebhookDelivery)
        self._row = itemgetter(*self.statements.names)

    async def judge(
        self, change: Change, values: Values, current: WebhookDelivery | None
    ) -> list[MemberError]:
        del current
        errors = await endpoint_errors(change, values.get("endpoint_id"))
        event_id = values.get("event_id")
        if event_id is not None and await _type_of(change, event_id) is None:
            errors.append(
                MemberError(("event_id",), "must be the id of an event that is still kept", "unknown")
            )
        return errors

    async def create(self, change: Change, values: Values) -> Rows:
        """Sends an event to an endpoint again; without `eventId`, sends a ping. With `from` it creates a
        redelivery, which sends all events of a period again."""
        await self.check(change, values, None)
        columns = await self._again(change, values) if values["event_id"] else _ping(change)
        row = delivery(change.new_id(), values["endpoint_id"], change.now_at, **columns)
        await change.tx.run(webhook_deliveries.QUEUE, **row)
        change.queued = True
        return [self._row(row)]

    async def _again(self, change: Change, values: Values) -> dict[str, Any]:
        event_type = await _type_of(change, values["event_id"])
        return {"event_id": values["event_id"], "event_type": event_type, "later": 2}


async def endpoint_errors(change: Change, endpoint_id: str | None) -> list[MemberError]:
    """The errors of an endpoint as the target of a delivery."""
    if endpoint_id is None:
        return []
    row = await change.tx.row(statements_of(WebhookEndpoint).get, id=endpoint_id)
    if row is None:
        return [MemberError(("endpoint_id",), "must be the id of an existing webhook endpoint", "unknown")]
    if statements_of(WebhookEndpoint).load(row).status == "DISABLED":
        message = "names an endpoint that is DISABLED; set its status to ENABLED first"
        return [MemberError(("endpoint_id",), message, "disabled")]
    return []


def _ping(change: Change) -> dict[str, Any]:
    return {"event_type": f"{change.services.emitter.prefix}.{PING}", "source": change.source}


async def _type_of(change: Change, event_id: str) -> str | None:
    row = await change.tx.row(webhook_redeliveries.EVENT, id=event_id)
    return row[0] if row else None
