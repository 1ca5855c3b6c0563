"""Signatures of webhook deliveries: made by the service, verified by the receiver.

Each delivery carries two: `X-Signature-256`, an HMAC-SHA256 of the body alone, and the three headers of
Standard Webhooks, which its libraries verify. The time that limits replays is inside the signed body.

This file needs nothing but Python 3.11 and its standard library: a receiver may copy it as it is.
"""

import hmac
import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any

_PREFIX = "whsec_"

_HEADER = re.compile(r"sha256=[0-9a-f]{64}")


class VerificationError(Exception):
    """A delivery cannot be trusted; the message says what is wrong and what to do."""


def sign(body: bytes, secret: str) -> str:
    """`sha256=<hex>`: the key is the whole secret, including `whsec_`."""
    return "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()


def standard(event_id: str, timestamp: int, body: bytes, secret: str) -> str:
    """`v1,<base64>`, as Standard Webhooks defines it; the key is the base64 part of the secret.

    `timestamp` is in seconds since 1970. Raises ValueError if that part is not base64.
    """
    key = b64decode(secret.removeprefix(_PREFIX))
    signed_content = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + b64encode(hmac.digest(key, signed_content, "sha256")).decode()


def signed(event_id: str, timestamp: int, body: bytes, secret: str) -> list[tuple[str, str]]:
    """The headers of a delivery that carry its signatures; `timestamp` is in seconds since 1970.

    Raises ValueError if the secret is not base64 after `whsec_`.
    """
    return [
        ("X-Signature-256", sign(body, secret)),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", standard(event_id, timestamp, body, secret)),
    ]


def verify(
    body: bytes | str,
    header: str | None,
    secrets: str | Iterable[str],
    tolerance: float = 300,
    *,
    now: float | None = None,
) -> dict[str, Any]:
    """The event of a delivery. Raises `VerificationError` unless its signature is right and its time is near.

    `body` is what arrived, byte for byte; `header` is the value of `X-Signature-256`; `secrets` are those of
    the endpoint, two while they are being rotated. `tolerance` and `now` are in seconds, `now` since 1970.
    """
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    _check_signature(content, header, [secrets] if isinstance(secrets, str) else list(secrets or ()))
    event = _object(content)
    _check_age(_signed_at(event), time.time() if now is None else now, tolerance)
    return event


def _check_signature(body: bytes, header: str | None, secrets: list[str]) -> None:
    if not secrets or not all(secrets):
        message = "There is no secret to verify with, or an empty one: pass the secrets of the endpoint"
        raise VerificationError(message)
    if not header:
        message = "There is no signature: pass the header X-Signature-256; without it, answer 401"
        raise VerificationError(message)
    if not _HEADER.fullmatch(header):
        message = (
            "The signature must be sha256= and 64 lower-case hexadecimal digits: pass the value of the "
            "header X-Signature-256 as it arrived; if that is the value, answer 401"
        )
        raise VerificationError(message)
    # Every secret is tried, so that the time taken does not reveal which one it was.
    matches = [hmac.compare_digest(sign(body, secret), header) for secret in secrets]
    if not any(matches):
        message = (
            "The signature belongs to another body or another secret: pass the bytes as they arrived, before "
            "any parsing, and the secrets of this endpoint; if both are right, answer 401"
        )
        raise VerificationError(message)


def _object(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body.decode())
    except (ValueError, RecursionError):
        message = "The body is signed, but is not JSON: answer 401, and tell the sender"
        raise VerificationError(message) from None
    if not isinstance(event, dict):
        message = "The body is signed, but is not a JSON object: answer 401, and tell the sender"
        raise VerificationError(message)
    return event


def _signed_at(event: dict[str, Any]) -> float:
    """Seconds since 1970, from `signedat`, which differs in each attempt, or from `time` without it."""
    name = "time" if event.get("signedat") is None else "signedat"
    try:
        moment = datetime.fromisoformat(str(event.get(name)).upper())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = f"The body's `{name}` is not an RFC 3339 time: answer 401, and tell the sender"
        raise VerificationError(message)
    return moment.timestamp()


def _check_age(signed_at: float, now: float, tolerance: float) -> None:
    age = now - signed_at
    if age > tolerance:
        message = (
            f"The delivery was signed {age:.0f} s ago and may be a replay: answer 401, and it will be sent "
            "again with a new signature; if all deliveries are old, set this machine's clock"
        )
        raise VerificationError(message)
    if age < -tolerance:
        message = (
            f"The delivery was signed {-age:.0f} s in the future: answer 401, and it will be sent again; "
            "if all deliveries are early, set this machine's clock"
        )
        raise VerificationError(message)
