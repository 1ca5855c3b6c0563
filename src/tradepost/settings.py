"""Settings: every one is an environment variable `TRADEPOST_<NAME>`, read and checked once, at the start.

`SETTINGS` is the list that the help and the documentation show; a bad value stops the start with one line.
"""

import base64
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from tradepost.clock import parse_instant

_RATE = re.compile(r"([0-9]{1,9})\s*/\s*(?:([0-9]{1,6})\s*)?(second|minute|hour)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LONGEST = 3600
_RETRIES = 7
_LONGEST_DELAY = 30 * 24 * 3600
_KEY_BYTES = 32
_PREFIX = "TRADEPOST_"


class BadSetting(Exception):
    """A setting that cannot be used; the message is the one clear line."""


class _Hidden(ValueError):
    """What is wrong with a setting whose value is not to be shown."""


@dataclass(frozen=True)
class VersionDates:
    """What is announced for an API version: instants in milliseconds, and where migration is explained."""

    deprecated: int | None
    sunset: int | None
    link: str | None


def _setting(default: str, doc: str, parse: Callable[[str], Any] = str) -> Any:
    return field(
        default_factory=lambda: parse(default), metadata={"default": default, "doc": doc, "parse": parse}
    )


def _number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not lowest <= int(text) <= highest:
            message = f"has to be an integer from {lowest} to {highest}"
            raise ValueError(message)
        return int(text)

    return parse


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            message = f"has to be one of {', '.join(values)}"
            raise ValueError(message)
        return text

    return parse


def _seconds(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or not 0 < float(text) <= _LONGEST:
        message = f"has to be seconds above 0, up to {_LONGEST}, such as 2.5"
        raise ValueError(message)
    return float(text)


def _database_url(text: str) -> str:
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///"):
        return text
    if text.startswith(("postgresql://", "postgres://")):
        return text.replace("postgres://", "postgresql://", 1)
    message = "has to be sqlite:///<file> or postgresql://<user>@<host>/<database>"
    raise ValueError(message)


def _base_url(text: str) -> str | None:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query):
        message = "has to be an address such as https://api.example.com"
        raise ValueError(message)
    return text.rstrip("/") or None


def _rate(text: str) -> tuple[int, int]:
    spelled = _RATE.fullmatch(text.strip())
    requests, periods = (int(spelled[1]), int(spelled[2] or 1)) if spelled else (0, 0)
    if spelled is None or requests < 1 or periods < 1:
        message = "has to look like 1000/second, 600/minute or 100/10 seconds"
        raise ValueError(message)
    return requests, periods * _SECONDS[spelled[3]]


def _log(text: str) -> tuple[str, str]:
    form, _, level = text.partition(",")
    if form.strip() not in ("text", "json") or (level or "info").strip().lower() not in (
        "debug",
        "info",
        "warning",
        "error",
    ):
        message = "has to be text or json, with a level behind a comma: json,warning"
        raise ValueError(message)
    return form.strip(), (level or "info").strip().upper()


def _versions(text: str) -> dict[str, VersionDates]:
    class Announced(msgspec.Struct, forbid_unknown_fields=True):
        deprecated: str | None = None
        sunset: str | None = None
        link: str | None = None

    try:
        given = msgspec.json.decode(text or "{}", type=dict[str, Announced])
    except msgspec.DecodeError as error:
        message = f'has to be JSON such as {{"v1": {{"deprecated": "2027-01-01"}}}}: {error}'
        raise ValueError(message) from None
    return {
        name: VersionDates(_day(each.deprecated), _day(each.sunset), each.link)
        for name, each in given.items()
    }


def _day(text: str | None) -> int | None:
    return None if text is None else parse_instant(text)


def _redis_url(text: str) -> str | None:
    if text and urlsplit(text).scheme not in ("redis", "rediss", "unix"):
        message = "has to be an address such as redis://127.0.0.1:6379/0"
        raise ValueError(message)
    return text or None


def _switch(text: str) -> bool:
    return _choice("0", "1")(text) == "1"


def _schedule(text: str) -> tuple[float, ...]:
    delays = [each.strip() for each in text.split(",")]
    if len(delays) > _RETRIES or not all(
        _DECIMAL.fullmatch(each) and float(each) <= _LONGEST_DELAY for each in delays
    ):
        message = f"has to be up to {_RETRIES} delays in seconds, separated by commas, each up to 30 days"
        raise ValueError(message)
    return tuple(float(each) for each in delays)


def _days(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or float(text) == 0:
        message = "has to be days above 0, such as 5 or 0.5"
        raise ValueError(message)
    return float(text)


def _keys(text: str) -> tuple[str, ...]:
    """Keys as Fernet takes them: 32 bytes in URL-safe base64."""
    found = [each.strip().replace("+", "-").replace("/", "_") for each in text.split(",") if each.strip()]
    for each in found:
        try:
            length = len(base64.b64decode(each.encode(), b"-_", validate=True))
        except ValueError:
            length = 0
        if length != _KEY_BYTES:
            message = "has to be 32 random bytes in base64, as `openssl rand -base64 32` prints them"
            raise _Hidden(message)
    return tuple(found)


def _path(text: str) -> Path | None:
    if text and not Path(text).exists():
        message = "names no file or folder"
        raise ValueError(message)
    return Path(text) if text else None


def _prefix(text: str) -> str:
    if not text or not all(part.isalnum() for part in text.split(".")):
        message = "has to be a reverse-DNS name such as com.example.shop"
        raise ValueError(message)
    return text


@dataclass(frozen=True)
class Settings:
    """Everything that can be set."""

    env: Literal["development", "production"] = _setting(
        "development",
        "production turns off what is for development alone",
        _choice("development", "production"),
    )
    database_url: str = _setting(
        "sqlite:///tradepost.db", "where the data is: sqlite:///<file> or postgresql://…", _database_url
    )
    database_pool: int = _setting("8", "connections a process opens to PostgreSQL", _number(1, 1000))
    host: str = _setting("127.0.0.1", "the address to listen on")
    port: int = _setting("8000", "the port to listen on", _number(0, 65535))
    base_url: str | None = _setting(
        "", "what links and event sources start with; else the request's address", _base_url
    )
    log: tuple[str, str] = _setting("text", "text or json, and a level: json,warning", _log)
    rate_limit: tuple[int, int] = _setting(
        "1000/second", "requests a key may make, and an address without a key", _rate
    )
    redis_url: str | None = _setting("", "a Redis in which all processes share their rate limits", _redis_url)
    api_versions: dict[str, VersionDates] = _setting(
        "{}",
        'what is announced: {"v1": {"deprecated": "DATE", "sunset": "DATE", "link": "URL"}}',
        _versions,
    )
    deprecation_format: Literal["http-date", "rfc9745"] = _setting(
        "http-date",
        "how the Deprecation header is written: http-date or rfc9745",
        _choice("http-date", "rfc9745"),
    )
    event_prefix: str = _setting("dev.tradepost", "what event types start with", _prefix)
    retention_days: int = _setting(
        "30", "days that events and finished deliveries are kept", _number(1, 36500)
    )
    deliveries: bool = _setting("1", "0 leaves webhooks to `tradepost worker`", _switch)
    webhook_schedule: tuple[float, ...] = _setting(
        "5,30,120,600,3600,21600,86400", "seconds from each failed attempt to the next", _schedule
    )
    webhook_timeout: float = _setting("5", "seconds that a receiver has to answer", _seconds)
    webhook_allow_private: bool = _setting(
        "0", "1 permits http, loopback and private addresses as targets, for development", _switch
    )
    webhook_disable_days: float = _setting(
        "5", "days of nothing but failures after which an endpoint is disabled", _days
    )
    encryption_key: tuple[str, ...] = _setting(
        "",
        "what seals webhook secrets, 32 bytes in base64; behind commas, older ones that still open; "
        "without, a key file",
        _keys,
    )
    graphql_max_depth: int = _setting("10", "levels of fields an operation may nest", _number(1, 100))
    graphql_max_complexity: int = _setting(
        "20000", "points an operation may cost: 1 a field, times the page sizes above it", _number(1, 10**9)
    )
    graphql_max_tokens: int = _setting("2000", "tokens a GraphQL document may have", _number(1, 100_000))
    graphql_max_bytes: int = _setting("65536", "bytes a GraphQL document may have", _number(1, 1 << 20))
    graphql_max_aliases: int = _setting("100", "aliases a GraphQL document may have", _number(0, 100_000))
    graphql_timeout: float = _setting("10", "seconds an operation may take, such as 2.5", _seconds)
    graphql_allowlist: Path | None = _setting(
        "", "a file or folder of .graphql documents: no others are answered", _path
    )
    graphql_max_sockets: int = _setting(
        "10000", "WebSockets a process keeps open; one key has at most half of them", _number(2, 1_000_000)
    )
    header_seconds: int = _setting(
        "10", "seconds in which the head of a request has to arrive", _number(1, 3600)
    )
    shutdown_seconds: int = _setting(
        "30", "seconds that running requests get to finish at shutdown", _number(0, 3600)
    )
    metrics_dir: str | None = _setting(
        "", "set by serve for its workers: where they share their figures", lambda text: text or None
    )


def load(environment: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """The settings of an environment; `given` ones (from the command line) win. Raises `BadSetting`."""
    environment = os.environ if environment is None else environment
    fields = Settings.__dataclass_fields__
    unknown = [
        name
        for name in environment
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).lower() not in fields
    ]
    for name in sorted(unknown):
        if not name.startswith(
            (
                "TRADEPOST_TEST_",
                "TRADEPOST_BENCH_",
                "TRADEPOST_ONLINE_",
                "TRADEPOST_KEY",  # what `listen` shows to a service
            )
        ):
            message = f"{name} is not a setting; tradepost serve --help lists them"
            raise BadSetting(message)
    values: dict[str, Any] = {}
    for name, spec in fields.items():
        text = given.get(name)
        if text is None:
            text = environment.get(_PREFIX + name.upper())
        if text is not None:
            values[name] = _parsed(name, str(text), cast("Callable[[str], Any]", spec.metadata["parse"]))
    return Settings(**values)


def _parsed(name: str, text: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except _Hidden as error:
        message = f"{_PREFIX}{name.upper()} {error}"
        raise BadSetting(message) from None
    except ValueError as error:
        message = f"{_PREFIX}{name.upper()}={text!r} {error}"
        raise BadSetting(message) from None


def described() -> list[tuple[str, str, str]]:
    """Each setting's variable, default and meaning, for the help and the documentation."""
    return [
        (_PREFIX + name.upper(), spec.metadata["default"], spec.metadata["doc"])
        for name, spec in Settings.__dataclass_fields__.items()
    ]
