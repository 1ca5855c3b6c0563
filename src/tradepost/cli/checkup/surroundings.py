"""What is around the service: its settings, Redis, and what was announced of the API's versions."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping

from tradepost.cli.checkup.finding import Finding, fail, ok, warn
from tradepost.clock import Clock, instant
from tradepost.settings import Settings
from tradepost.versions.changes import VERSIONS
from tradepost.versions.lifecycle import Dates, Lifecycle

_PREFIX = "TRADEPOST_"
_SECONDS = 2.0
_SOON_MS = 30 * 24 * 3600 * 1000


def given(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Which settings are set; a bad one has ended the examination before."""
    names = sorted(name for name in environment if name.startswith(_PREFIX))
    yield ok(f"settings: {', '.join(names)}" if names else "settings: none is set, the defaults hold")


def address(found: Settings) -> Iterator[Finding]:
    """Whether links and events begin with an address that no caller chooses; nothing if they do."""
    if found.env == "production" and found.base_url is None:
        yield warn(
            "TRADEPOST_BASE_URL is not set",
            "links and the sources of events begin with whatever Host a caller sends; set it to the public "
            "address, such as https://api.example.com",
        )


async def redis(found: Settings) -> AsyncIterator[Finding]:
    """Whether the limits that processes share are shared."""
    if found.redis_url is None:
        return
    from redis.asyncio import Redis  # noqa: PLC0415 (loaded only where it is configured)
    from redis.exceptions import RedisError  # noqa: PLC0415

    client = Redis.from_url(found.redis_url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
    try:
        await client.ping()
        yield ok("Redis answers")
    except (RedisError, OSError, ValueError) as error:
        advice = "until it does, each process limits alone; see TRADEPOST_REDIS_URL"
        yield fail(f"Redis does not answer ({error})", advice)
    finally:
        await client.aclose()


def versions(found: Settings) -> Iterator[Finding]:
    """Where each version of the API is in its life."""
    announced = found.api_versions
    dates = {name: Dates(each.deprecated, each.sunset, each.link) for name, each in announced.items()}
    lifecycle = Lifecycle(VERSIONS, dates, Clock(), "http-date")
    phases = {version.name: lifecycle.phase(version) for version in VERSIONS}
    for name in sorted(announced.keys() - phases):
        yield warn(f"TRADEPOST_API_VERSIONS names {name}", f"there is {', '.join(phases)}")
    if all(phase == "retired" for phase in phases.values()):
        yield fail("every version of the API is retired", "all requests get 410; see TRADEPOST_API_VERSIONS")
    for name, phase in phases.items():
        yield _life(name, phase, dates.get(name, Dates()))


def _life(name: str, phase: str, dates: Dates) -> Finding:
    if phase == "retired":
        return warn(f"{name} is retired since {instant(dates.sunset or 0)}", "its requests get 410")
    if dates.sunset is not None and dates.sunset - Clock().now() < _SOON_MS:
        return warn(f"{name} ends on {instant(dates.sunset)}", "its requests get 410 from then on")
    if phase == "active":
        return ok(f"{name} is active")
    return ok(f"{name} is deprecated" + (f", until {instant(dates.sunset)}" if dates.sunset else ""))
