"""Webhook endpoints: their subscriptions, the check of their URL, and their first secret.

The event types of an endpoint are stored twice: as they were given, and as subscriptions, by which an event
finds its endpoints. Only enabled endpoints have subscriptions.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from tradepost.actions import webhook_secrets
from tradepost.actions.change import Change, Rows, Services
from tradepost.actions.standard import StandardActions
from tradepost.domain.input import Values, peek
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.events.outbox import Emitter, patterns_of
from tradepost.problems import MemberError
from tradepost.storage.statements import webhook_endpoints
from tradepost.storage.statements import webhook_secrets as secrets

_BY_REQUEST = "Disabled by request."


class WebhookEndpoints(StandardActions[WebhookEndpoint]):
    """The actions of webhook endpoints."""

    reveals: ClassVar[Mapping[str, str]] = {
        "secret": "What deliveries are signed with, shown this once and never again."
    }

    prepares: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(WebhookEndpoint)

    async def prepare(self, services: Services, body: bytes, names: Mapping[str, str]) -> None:
        """Resolves the host of the URL, which a transaction must not wait for."""
        url = peek(body).get(names["url"])
        if isinstance(url, str):
            await services.targets.look_up(url)

    async def judge(
        self, change: Change, values: Values, current: WebhookEndpoint | None
    ) -> list[MemberError]:
        """Only what changes is judged, so that an endpoint can be disabled even if its URL is refused now."""
        stored = self.statements.stored(values)
        new = {
            name
            for name in ("url", "event_types")
            if stored.get(name) not in (None, getattr(current, name, None))
        }
        unknown = (
            unknown_types(change.services.emitter, values["event_types"]) if "event_types" in new else []
        )
        refused = change.services.targets.refusal(values["url"]) if "url" in new else None
        return [*([MemberError(("url",), refused, "refused")] if refused else []), *unknown]

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds an endpoint and creates its first secret, which is shown only in this response."""
        disabled = values["status"] == "DISABLED"
        (row,) = await super().create(change, values | {"disabled_reason": _BY_REQUEST if disabled else None})
        endpoint = self.statements.load(row)
        await _subscribe(change, endpoint)
        _, change.revealed["secret"] = await webhook_secrets.issue(change, endpoint.id)
        return [row]

    async def replace(self, change: Change, current: WebhookEndpoint, values: Values) -> Rows:
        """Changes an endpoint. A DISABLED one gets no deliveries; once it is ENABLED again, its pending ones
        are sent. A new url resets the count of failures."""
        (row,) = await super().replace(change, current, values | _reason(current, values["status"]))
        after = self.statements.load(row)
        if (after.status, after.event_types) != (current.status, current.event_types):
            await change.tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=after.id)
            await _subscribe(change, after)
        enabled = after.status == "ENABLED" != current.status
        if enabled or after.url != current.url:
            await change.tx.run(webhook_endpoints.WORKING, at_id=after.id)
        change.queued |= enabled
        return [row]

    async def delete(self, change: Change, current: WebhookEndpoint) -> None:
        """Removes an endpoint: its secrets are erased, and its pending deliveries are abandoned within a
        minute."""
        await super().delete(change, current)
        await change.tx.run(secrets.RETIRE_ALL, at_endpoint_id=current.id, now=change.now_at)
        await change.tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=current.id)


def patterns(emitter: Emitter, event_types: Iterable[str]) -> set[str]:
    """The patterns of entries of `eventTypes`; entries for types that no longer exist have none."""
    return {pattern for pattern in _patterns(emitter, event_types) if pattern is not None}


def unknown_types(emitter: Emitter, event_types: Iterable[str] | None) -> list[MemberError]:
    """The entries of `eventTypes` that match no type of the catalogue."""
    return [
        MemberError(("event_types", index), "must match a type of event that /event-types lists", "unknown")
        for index, pattern in enumerate(_patterns(emitter, event_types or ()))
        if pattern is None
    ]


def _patterns(emitter: Emitter, event_types: Iterable[str]) -> Iterator[str | None]:
    """The pattern of each entry, without the service's prefix; None if it matches no type."""
    names = [name for each in emitter.types.values() for name, _ in each.names]
    known = {pattern for name in names for pattern in patterns_of(name)}
    for each in event_types:
        bare = each.removeprefix(f"{emitter.prefix}.")
        yield each if each in known else bare if bare in known else None


def _reason(before: WebhookEndpoint, status: str) -> dict[str, str | None]:
    """The reason for being disabled, if the status changes."""
    if status == before.status:
        return {}
    return {"disabled_reason": _BY_REQUEST if status == "DISABLED" else None}


async def _subscribe(change: Change, endpoint: WebhookEndpoint) -> None:
    if endpoint.status == "ENABLED":
        event_types: Any = endpoint.event_types  # as JSON
        wanted = patterns(change.services.emitter, msgspec.json.decode(event_types))
        rows = [{"pattern": each, "endpoint_id": endpoint.id} for each in sorted(wanted)]
        await change.tx.many(webhook_endpoints.SUBSCRIBE, rows)
