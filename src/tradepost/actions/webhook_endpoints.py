"""Webhook endpoints: plain, but for what they want to be told of, where they may be, and their first secret.

What an endpoint wants is kept twice: as it was given, for whoever reads it, and as subscriptions, which
events find it by. Only endpoints that are enabled have those.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from tradepost.actions import webhook_secrets
from tradepost.actions.change import Change, Means, Rows
from tradepost.actions.plain import Plain
from tradepost.domain.input import Values, glance
from tradepost.domain.webhook_endpoint import WebhookEndpoint
from tradepost.events.outbox import Emitter, patterns_of
from tradepost.problems import MemberError
from tradepost.storage.database import Row
from tradepost.storage.statements import webhook_endpoints
from tradepost.storage.statements import webhook_secrets as secrets

_BY_REQUEST = "Disabled by request."


class WebhookEndpoints(Plain):
    """The actions of webhook endpoints."""

    reveals: ClassVar[Mapping[str, str]] = {
        "secret": "What deliveries are signed with, shown this once and never again."
    }

    def __init__(self) -> None:
        super().__init__(WebhookEndpoint)

    async def prepare(self, means: Means, body: bytes, names: Mapping[str, str]) -> None:
        """Looks the name in the URL up, which a transaction must not wait for."""
        url = glance(body).get(names["url"])
        if isinstance(url, str):
            await means.targets.look_up(url)

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        """What stays as it was is not judged again: an endpoint can be disabled whatever became of it."""
        before, given = self._named(current), self.kept(values)
        new = {name for name in ("url", "event_types") if given.get(name) not in (None, before.get(name))}
        wrong = unknown_types(change.means.emitter, values["event_types"]) if "event_types" in new else []
        refused = change.means.targets.refusal(values["url"]) if "url" in new else None
        return [*([MemberError(("url",), refused, "refused")] if refused else []), *wrong]

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds an endpoint, and makes its first secret, which is shown in the answer to this alone."""
        disabled = values["status"] == "DISABLED"
        (row,) = await super().create(
            change, {**values, "disabled_reason": _BY_REQUEST if disabled else None}
        )
        await _subscribe(change, self._named(row))
        _, change.revealed["secret"] = await webhook_secrets.issue(change, row[0])
        return [row]

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Changes an endpoint. DISABLED gets nothing any more; ENABLED again, what waits goes out. With a new
        url it begins without failures."""
        before = self._named(current)
        (row,) = await super().replace(change, current, values | _reason(before, values["status"]))
        after = self._named(row)
        if (after["status"], after["event_types"]) != (before["status"], before["event_types"]):
            await change.tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=row[0])
            await _subscribe(change, after)
        enabled = after["status"] == "ENABLED" != before["status"]
        if enabled or after["url"] != before["url"]:
            await change.tx.run(webhook_endpoints.WORKING, at_id=row[0])
        change.queued |= enabled
        return [row]

    async def delete(self, change: Change, current: Row) -> None:
        """Nothing is sent to it any more: its secrets are forgotten, and what is pending is abandoned within
        a minute."""
        await super().delete(change, current)
        await change.tx.run(secrets.RETIRE_ALL, at_endpoint_id=current[0], now=change.now)
        await change.tx.run(webhook_endpoints.UNSUBSCRIBE, at_endpoint_id=current[0])

    def _named(self, row: Row | None) -> dict[str, Any]:
        return dict(zip(self.statements.names, row, strict=True)) if row else {}


def patterns(emitter: Emitter, given: Iterable[str]) -> set[str]:
    """What entries of `eventTypes` stand for; those of types that are no more stand for nothing."""
    return {found for found in _patterns(emitter, given) if found is not None}


def unknown_types(emitter: Emitter, given: Iterable[str] | None) -> list[MemberError]:
    """The entries of `eventTypes` that match no type of the catalogue."""
    return [
        MemberError(("event_types", index), "matches no type of event; see /event-types", "unknown")
        for index, found in enumerate(_patterns(emitter, given or ()))
        if found is None
    ]


def _patterns(emitter: Emitter, given: Iterable[str]) -> Iterator[str | None]:
    """What each entry stands for, without the service's prefix; None if for no type there is."""
    names = [name for each in emitter.types.values() for name, _ in each.names()]
    known = {found for name in names for found in patterns_of(name)}
    for each in given:
        bare = each.removeprefix(f"{emitter.prefix}.")
        yield each if each in known else bare if bare in known else None


def _reason(before: Mapping[str, Any], status: str) -> dict[str, str | None]:
    """Why it is disabled: as before, unless that is what changes."""
    if status == before["status"]:
        return {}
    return {"disabled_reason": _BY_REQUEST if status == "DISABLED" else None}


async def _subscribe(change: Change, endpoint: Mapping[str, Any]) -> None:
    if endpoint["status"] == "ENABLED":
        wanted = patterns(change.means.emitter, msgspec.json.decode(endpoint["event_types"]))
        rows = [{"pattern": each, "endpoint_id": endpoint["id"]} for each in sorted(wanted)]
        await change.tx.many(webhook_endpoints.SUBSCRIBE, rows)
