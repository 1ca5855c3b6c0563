"""An attempt: a delivery rendered, signed and posted; once, or twice while a secret is being rotated.

The current secret signs first. If the receiver answers with anything but 2xx, the delivery is posted again at
once under the retiring secret, so that a receiver that has not switched yet loses nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tradepost.clock import instant
from tradepost.domain.webhook_delivery import Attempt
from tradepost.egress.client import Reply
from tradepost.webhooks.envelope import EventRow, render
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
    """An endpoint as it was when its deliveries were claimed.

    `failing_since` is the instant at which its failures began, `failed_at` that at which the last one was
    noted; both are None if it works.
    """

    id: str
    url: str
    content_type: str
    failing_since: str | None
    failed_at: str | None
    current: Secret
    retiring: Secret | None


class Claimed(NamedTuple):
    """A delivery under a lease. `attempts` is the JSON of those already made; `number` is that of the next.

    Without an event there is nothing to send: it was deleted after the delivery was queued.
    """

    id: str
    lease: str
    receiver: Receiver
    event: EventRow | None
    number: int
    attempts: str
    due_at: str


@dataclass(slots=True)
class AttemptOutcome:
    """What an attempt came to: its requests, the reply to the last one, and when it ended (ms since 1970).

    `confirmed_by` is the id of the secret under which the receiver accepted the delivery.
    """

    claimed: Claimed
    requests: list[Attempt] = field(default_factory=list)
    reply: Reply | None = None
    confirmed_by: str | None = None
    ended_ms: int = 0

    @property
    def delivered(self) -> bool:
        """Whether the receiver accepted the delivery."""
        return self.confirmed_by is not None


async def attempt(poster: Poster, now_ms: Callable[[], int], claimed: Claimed) -> AttemptOutcome:
    """Makes an attempt, which may take twice the time that a receiver has to answer.

    Raises ValueError if a secret is not base64; whatever the receiver does raises nothing.
    """
    outcome = AttemptOutcome(claimed)
    receiver = claimed.receiver
    if claimed.event is not None:
        reply = await _post(poster, now_ms, outcome, claimed.event, receiver.current)
        if receiver.retiring and reply.status is not None and not outcome.delivered:
            await _post(poster, now_ms, outcome, claimed.event, receiver.retiring)
    outcome.ended_ms = now_ms()
    return outcome


async def _post(
    poster: Poster, now_ms: Callable[[], int], outcome: AttemptOutcome, event: EventRow, secret: Secret
) -> Reply:
    claimed = outcome.claimed
    signed_ms = now_ms()
    body = render(event, instant(signed_ms), claimed.number)
    headers = [("Content-Type", claimed.receiver.content_type)]
    headers += signed(event.id, signed_ms // 1000, body, secret.value)
    reply = await poster.post(claimed.receiver.url, headers, body)
    outcome.reply = reply
    outcome.requests.append(
        Attempt(
            number=claimed.number,
            attempted_at=instant(signed_ms),
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
