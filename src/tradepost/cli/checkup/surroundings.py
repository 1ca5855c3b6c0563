"""The surroundings of the service: its settings, Redis, and the announced life of API versions."""

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


def variables(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """The settings that are set; a bad one has ended the checks before."""
    names = sorted(name for name in environment if name.startswith(_PREFIX))
    yield ok(f"settings: {', '.join(names)}" if names else "settings: none are set, the defaults apply")


def address(settings: Settings) -> Iterator[Finding]:
    """A warning if a caller can choose the URL that links and event sources start with."""
    if settings.env == "production" and settings.base_url is None:
        yield warn(
            "TRADEPOST_BASE_URL is not set",
            "links and event sources start with the Host that a caller sends; set it to the public URL, "
            "such as https://api.example.com",
        )


async def redis(settings: Settings) -> AsyncIterator[Finding]:
    """Whether Redis answers, if processes share rate limits through it."""
    if settings.redis_url is None:
        return
    from redis.asyncio import Redis  # noqa: PLC0415 (loaded only where it is configured)
    from redis.exceptions import RedisError  # noqa: PLC0415

    client = Redis.from_url(settings.redis_url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
    try:
        await client.ping()
        yield ok("Redis answers")
    except (RedisError, OSError, ValueError) as error:
        advice = "until it does, each process counts its own rate limits; see TRADEPOST_REDIS_URL"
        yield fail(f"Redis does not answer ({error})", advice)
    finally:
        await client.aclose()


def versions(settings: Settings) -> Iterator[Finding]:
    """The phase of each API version's life."""
    announced = settings.api_versions
    dates = {name: Dates(each.deprecated, each.sunset, each.link) for name, each in announced.items()}
    lifecycle = Lifecycle(VERSIONS, dates, Clock(), "http-date")
    phases = {version.name: lifecycle.phase(version) for version in VERSIONS}
    for name in sorted(announced.keys() - phases):
        yield warn(f"TRADEPOST_API_VERSIONS names {name}", f"the known versions are {', '.join(phases)}")
    if all(phase == "retired" for phase in phases.values()):
        yield fail("all API versions are retired", "all requests get 410; see TRADEPOST_API_VERSIONS")
    for name, phase in phases.items():
        yield _life(name, phase, dates.get(name, Dates()))


def _life(name: str, phase: str, dates: Dates) -> Finding:
    if phase == "retired":
        return warn(f"{name} was retired on {instant(dates.sunset_ms or 0)}", "its requests get 410")
    if dates.sunset_ms is not None and dates.sunset_ms - Clock().now_ms() < _SOON_MS:
        return warn(f"{name} will be retired on {instant(dates.sunset_ms)}", "its requests will get 410")
    if phase == "active":
        return ok(f"{name} is active")
    return ok(f"{name} is deprecated" + (f", until {instant(dates.sunset_ms)}" if dates.sunset_ms else ""))
