"""Webhook deliveries by request: an event sent to an endpoint once more, or a ping to try it with."""

from typing import Any

from tradepost.actions.change import Change, Rows
from tradepost.actions.plain import Plain
from tradepost.domain.input import Values
from tradepost.domain.webhook_delivery import WebhookDelivery
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.events.event_type import PING
from tradepost.events.outbox import delivery
from tradepost.problems import MemberError
from tradepost.storage.database import Row
from tradepost.storage.plain import plain
from tradepost.storage.statements import webhook_redeliveries

_STATUS = plain(WebhookEndpoint).names.index("status")


class WebhookDeliveries(Plain):
    """The actions of webhook deliveries."""

    def __init__(self) -> None:
        super().__init__(WebhookDelivery)

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        del current
        wrong = await endpoint_errors(change, values.get("endpoint_id"))
        event_id = values.get("event_id")
        if event_id is not None and await _type_of(change, event_id) is None:
            wrong.append(MemberError(("event_id",), "names no event that is still kept", "unknown"))
        return wrong

    async def create(self, change: Change, values: Values) -> Rows:
        """Sends an event to an endpoint once more; without `eventId`, a ping. With `from` it is a
        redelivery: every event of a stretch of time is sent once more."""
        await self._refuse(change, values, None)
        given = await self._again(change, values) if values["event_id"] else _ping(change)
        made = delivery(change.new_id(), values["endpoint_id"], change.now, **given)
        change.queued = True
        return [await change.add(WebhookDelivery, made)]

    async def _again(self, change: Change, values: Values) -> dict[str, Any]:
        event_type = await _type_of(change, values["event_id"])
        return {"event_id": values["event_id"], "event_type": event_type, "later": 2}


async def endpoint_errors(change: Change, endpoint_id: str | None) -> list[MemberError]:
    """What is wrong with an endpoint as one that something is sent to."""
    if endpoint_id is None:
        return []
    found = await change.tx.row(plain(WebhookEndpoint).get, id=endpoint_id)
    if found is None:
        return [MemberError(("endpoint_id",), "names no webhook endpoint", "unknown")]
    if found[_STATUS] == "DISABLED":
        message = "names an endpoint that is DISABLED; set its status to ENABLED first"
        return [MemberError(("endpoint_id",), message, "disabled")]
    return []


def _ping(change: Change) -> dict[str, Any]:
    return {"event_type": f"{change.means.emitter.prefix}.{PING}", "source": change.source}


async def _type_of(change: Change, event_id: str) -> str | None:
    found = await change.tx.row(webhook_redeliveries.EVENT, id=event_id)
    return found[0] if found else None
