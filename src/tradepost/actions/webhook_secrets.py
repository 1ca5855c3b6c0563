"""Webhook secrets: made, one after another. A new one signs at once; the one before it retires.

A secret is shown in the answer that made it and kept sealed. While one retires there is no third: what a
receiver still needs must not be lost.
"""

import base64
import secrets
from collections.abc import Mapping
from typing import ClassVar

from tradepost.actions.change import Change, Rows
from tradepost.actions.standard import StandardActions
from tradepost.domain.input import Values
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.domain.webhook_secret import WebhookSecret
from tradepost.problems import Conflict, NotFound
from tradepost.storage.database import Row
from tradepost.storage.record_statements import statements_of
from tradepost.storage.statements import webhook_secrets

_PREFIX = "whsec_"
_BYTES = 32


class WebhookSecrets(StandardActions[WebhookSecret]):
    """The actions of webhook secrets."""

    reveals: ClassVar[Mapping[str, str]] = {"value": "The secret itself, shown this once and never again."}

    def __init__(self) -> None:
        super().__init__(WebhookSecret)

    async def create(self, change: Change, values: Values) -> Rows:
        """Creates a secret that signs from now on. The secret before it retires: a delivery that a receiver
        refuses under the new one is sent again at once under the old one, until deliveries succeed without
        it."""
        endpoint_id = values["endpoint_id"]
        if await change.tx.row(statements_of(WebhookEndpoint).lock, id=endpoint_id) is None:
            message = f"There is no webhook endpoint {endpoint_id}"
            raise NotFound(message)
        if await change.tx.row(webhook_secrets.OF_STATUS, endpoint_id=endpoint_id, status="RETIRING"):
            message = (
                "A secret of this endpoint is RETIRING: wait until deliveries are confirmed without it, "
                "or delete it"
            )
            raise Conflict(message)
        await change.tx.run(webhook_secrets.BEGIN_RETIRING, at_endpoint_id=endpoint_id)
        row, change.revealed["value"] = await issue(change, endpoint_id)
        return [row]

    async def delete(self, change: Change, current: WebhookSecret) -> None:
        """Retires a secret at once. It can still be read; the CURRENT one cannot be deleted."""
        if current.status == "CURRENT":
            message = "This secret is CURRENT and signs deliveries: create a new one, then delete this one"
            raise Conflict(message)
        await change.tx.run(webhook_secrets.RETIRE, at_id=current.id, now=change.now_at)


async def issue(change: Change, endpoint_id: str) -> tuple[Row, str]:
    """A new current secret of an endpoint: its row, and its value in the clear."""
    value = _PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()
    secret = WebhookSecret(
        id=change.new_id(), endpoint_id=endpoint_id, status="CURRENT", created_at=change.now_at
    )
    return await change.add(secret, sealed=change.services.sealer.seal(value), confirmed=0, needed=0), value
