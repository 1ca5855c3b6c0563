"""An attempt: a delivery rendered, signed and posted, once, or twice while a secret is being rotated.

Signed with the current secret first. What a receiver answers to that with anything but 2xx is posted again
at once under the retiring secret, so that one that has not switched yet loses nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tradepost.clock import instant
from tradepost.domain.webhook_delivery import Attempt
from tradepost.egress.client import Reply
from tradepost.webhooks.envelope import Event, render
from tradepost.webhooks.signature import signed


class Poster(Protocol):
    """What posts: `egress.client.Client`."""

    async def post(self, url: str, headers: list[tuple[str, str]], body: bytes) -> Reply:
        """Posts a body; never raises."""


class Secret(NamedTuple):
    """A secret in the clear."""

    id: str
    value: str


class Receiver(NamedTuple):
    """An endpoint as it was when its deliveries were claimed: since when it fails, and when it was noted last
    that it does, as instants; None if it works.
    """

    id: str
    url: str
    content_type: str
    failing_since: str | None
    failed_at: str | None
    current: Secret
    retiring: Secret | None


class Claimed(NamedTuple):
    """A delivery under a lease. `attempts` is the JSON of those before; `due` an instant.

    Without an event there is nothing to send: it was forgotten meanwhile.
    """

    id: str
    lease: str
    receiver: Receiver
    event: Event | None
    number: int
    attempts: str
    due: str


@dataclass(slots=True)
class Outcome:
    """What an attempt came to: its requests, the answer to the last of them, and when it ended (ms)."""

    claimed: Claimed
    requests: list[Attempt] = field(default_factory=list)
    reply: Reply | None = None
    confirmed_by: str | None = None  # the id of the secret it was accepted under
    ended: int = 0

    @property
    def delivered(self) -> bool:
        return self.confirmed_by is not None


async def attempt(poster: Poster, now: Callable[[], int], claimed: Claimed) -> Outcome:
    """Makes an attempt; it may take twice the time that a receiver has to answer."""
    outcome = Outcome(claimed)
    receiver = claimed.receiver
    if claimed.event is not None:
        reply = await _post(poster, now, outcome, claimed.event, receiver.current)
        if receiver.retiring and reply.status is not None and not outcome.delivered:
            await _post(poster, now, outcome, claimed.event, receiver.retiring)
    outcome.ended = now()
    return outcome


async def _post(
    poster: Poster, now: Callable[[], int], outcome: Outcome, event: Event, secret: Secret
) -> Reply:
    claimed = outcome.claimed
    at = now()
    body = render(event, instant(at), claimed.number)
    headers = [("Content-Type", claimed.receiver.content_type)]
    headers += signed(event.id, at // 1000, body, secret.value)
    reply = await poster.post(claimed.receiver.url, headers, body)
    outcome.reply = reply
    outcome.requests.append(
        Attempt(
            number=claimed.number,
            attempted_at=instant(at),
            duration_ms=round(1000 * reply.seconds),
            response_status=reply.status,
            error=reply.error,
            response_body=reply.body.decode("utf-8", "replace") if reply.status is not None else None,
            secret_id=secret.id,
        )
    )
    if reply.status is not None and reply.status // 100 == 2:  # noqa: PLR2004 (the class of success)
        outcome.confirmed_by = secret.id
    return reply
