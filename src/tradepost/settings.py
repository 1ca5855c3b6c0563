"""Settings: environment variables `TRADEPOST_<NAME>`, read and checked once at startup.

A bad value stops the startup with one line; `described` lists all settings for the help.
"""

import base64
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote, urlsplit

import msgspec

from tradepost.clock import parse_instant

_RATE = re.compile(r"([0-9]{1,9})\s*/\s*(?:([0-9]{1,6})\s*)?(second|minute|hour)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LONGEST_SECONDS = 3600
_MAX_RETRIES = 7
_LONGEST_DELAY_SECONDS = 30 * 24 * 3600
_KEY_BYTES = 32
_PREFIX = "TRADEPOST_"
_SQLITE = "sqlite:///"


class BadSetting(Exception):
    """An invalid setting; the message is one line for the user."""


class _Hidden(ValueError):
    """An invalid value that must not be shown, because it is a secret."""


@dataclass(frozen=True)
class VersionDates:
    """The announced end of an API version, in milliseconds since 1970, and the URL of its migration guide."""

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
            message = f"must be an integer from {lowest} to {highest}"
            raise ValueError(message)
        return int(text)

    return parse


def _choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            message = f"must be one of {', '.join(values)}"
            raise ValueError(message)
        return text

    return parse


def _seconds(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or not 0 < float(text) <= _LONGEST_SECONDS:
        message = f"must be a number of seconds above 0 and up to {_LONGEST_SECONDS}, such as 2.5"
        raise ValueError(message)
    return float(text)


def _database_url(text: str) -> str:
    if text.startswith(_SQLITE) and len(text) > len(_SQLITE):
        return text
    if text.startswith(("postgresql://", "postgres://")):
        return text.replace("postgres://", "postgresql://", 1)
    message = "must be sqlite:///<file> or postgresql://<user>@<host>/<database>"
    raise ValueError(message)


def _base_url(text: str) -> str | None:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query):
        message = "must be a URL such as https://api.example.com"
        raise ValueError(message)
    return text.rstrip("/") or None


def _rate(text: str) -> tuple[int, int]:
    match = _RATE.fullmatch(text.strip())
    requests, periods = (int(match[1]), int(match[2] or 1)) if match else (0, 0)
    if match is None or requests < 1 or periods < 1:
        message = "must look like 1000/second, 600/minute or 100/10 seconds"
        raise ValueError(message)
    return requests, periods * _SECONDS[match[3]]


def _log(text: str) -> tuple[str, str]:
    form, _, level = text.partition(",")
    if form.strip() not in ("text", "json") or (level or "info").strip().lower() not in (
        "debug",
        "info",
        "warning",
        "error",
    ):
        message = "must be text or json, optionally followed by a comma and a level: json,warning"
        raise ValueError(message)
    return form.strip(), (level or "info").strip().upper()


def _versions(text: str) -> dict[str, VersionDates]:
    class Announced(msgspec.Struct, forbid_unknown_fields=True):
        deprecated: str | None = None
        sunset: str | None = None
        link: str | None = None

    try:
        announced = msgspec.json.decode(text or "{}", type=dict[str, Announced])
    except msgspec.DecodeError as error:
        message = f'must be JSON such as {{"v1": {{"deprecated": "2027-01-01"}}}}: {error}'
        raise ValueError(message) from None
    return {
        name: VersionDates(_day(each.deprecated), _day(each.sunset), each.link)
        for name, each in announced.items()
    }


def _day(text: str | None) -> int | None:
    return None if text is None else parse_instant(text)


def _redis_url(text: str) -> str | None:
    if text and urlsplit(text).scheme not in ("redis", "rediss", "unix"):
        message = "must be a URL such as redis://127.0.0.1:6379/0"
        raise ValueError(message)
    return text or None


def _switch(text: str) -> bool:
    return _choice("0", "1")(text) == "1"


def _schedule(text: str) -> tuple[float, ...]:
    delays = [each.strip() for each in text.split(",")]
    if len(delays) > _MAX_RETRIES or not all(
        _DECIMAL.fullmatch(each) and float(each) <= _LONGEST_DELAY_SECONDS for each in delays
    ):
        message = f"must be at most {_MAX_RETRIES} delays in seconds, separated by commas, each up to 30 days"
        raise ValueError(message)
    return tuple(float(each) for each in delays)


def _days(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or float(text) == 0:
        message = "must be a number of days above 0, such as 5 or 0.5"
        raise ValueError(message)
    return float(text)


def _keys(text: str) -> tuple[str, ...]:
    """Fernet keys: 32 bytes in URL-safe base64."""
    keys = [each.strip().replace("+", "-").replace("/", "_") for each in text.split(",") if each.strip()]
    for each in keys:
        try:
            length = len(base64.b64decode(each.encode(), b"-_", validate=True))
        except ValueError:
            length = 0
        if length != _KEY_BYTES:
            message = "must be 32 random bytes in base64, as printed by `openssl rand -base64 32`"
            raise _Hidden(message)
    return tuple(keys)


def _path(text: str) -> Path | None:
    if text and not Path(text).exists():
        message = "is not a file or folder"
        raise ValueError(message)
    return Path(text) if text else None


def _prefix(text: str) -> str:
    if not text or not all(part.isalnum() for part in text.split(".")):
        message = "must be a reverse-DNS name such as com.example.shop"
        raise ValueError(message)
    return text


@dataclass(frozen=True)
class Settings:
    """All settings."""

    env: Literal["development", "production"] = _setting(
        "development",
        "production disables everything meant for development only",
        _choice("development", "production"),
    )
    database_url: str = _setting(
        "sqlite:///tradepost.db", "where the data is: sqlite:///<file> or postgresql://…", _database_url
    )
    database_pool: int = _setting("8", "maximum connections of a process to PostgreSQL", _number(1, 1000))
    host: str = _setting("127.0.0.1", "the address to listen on")
    port: int = _setting("8000", "the port to listen on", _number(0, 65535))
    base_url: str | None = _setting(
        "", "public URL that links and event sources start with; default: the request's Host", _base_url
    )
    log: tuple[str, str] = _setting("text", "text or json, optionally with a level: json,warning", _log)
    rate_limit: tuple[int, int] = _setting(
        "1000/second", "requests allowed per API key, or per address without a valid key", _rate
    )
    redis_url: str | None = _setting("", "a Redis through which processes share rate limits", _redis_url)
    api_versions: dict[str, VersionDates] = _setting(
        "{}",
        'announced changes of API versions: {"v1": {"deprecated": "DATE", "sunset": "DATE", "link": "URL"}}',
        _versions,
    )
    deprecation_format: Literal["http-date", "rfc9745"] = _setting(
        "http-date", "format of the Deprecation header: http-date or rfc9745", _choice("http-date", "rfc9745")
    )
    event_prefix: str = _setting("dev.tradepost", "prefix of event types", _prefix)
    retention_days: int = _setting("30", "days to keep events and finished deliveries", _number(1, 36500))
    deliveries: bool = _setting("1", "0 leaves webhook deliveries to `tradepost worker`", _switch)
    webhook_schedule: tuple[float, ...] = _setting(
        "5,30,120,600,3600,21600,86400", "seconds from each failed attempt to the next", _schedule
    )
    webhook_timeout: float = _setting("5", "seconds a receiver has to respond", _seconds)
    webhook_allow_private: bool = _setting(
        "0", "1 allows http, loopback and private addresses as targets; for development", _switch
    )
    webhook_disable_days: float = _setting(
        "5", "days of nothing but failures after which an endpoint is disabled", _days
    )
    encryption_key: tuple[str, ...] = _setting(
        "",
        "key that encrypts webhook secrets, 32 bytes in base64; older keys that still decrypt may follow "
        "after commas; default: a key file",
        _keys,
    )
    graphql_max_depth: int = _setting("10", "maximum nesting depth of an operation", _number(1, 100))
    graphql_max_complexity: int = _setting(
        "20000",
        "maximum complexity of an operation: 1 per field, times the page sizes above it",
        _number(1, 10**9),
    )
    graphql_max_tokens: int = _setting("2000", "maximum tokens in a GraphQL document", _number(1, 100_000))
    graphql_max_bytes: int = _setting("65536", "maximum bytes of a GraphQL document", _number(1, 1 << 20))
    graphql_max_aliases: int = _setting("100", "maximum aliases in a GraphQL document", _number(0, 100_000))
    graphql_timeout: float = _setting("10", "seconds an operation may run, such as 2.5", _seconds)
    graphql_allowlist: Path | None = _setting(
        "", "a .graphql file, or a folder of them; no other documents are allowed", _path
    )
    graphql_max_sockets: int = _setting(
        "10000", "maximum WebSockets of a process; a single key may open half of them", _number(2, 1_000_000)
    )
    header_seconds: int = _setting(
        "10", "seconds a client has to send the head of a request", _number(1, 3600)
    )
    shutdown_seconds: int = _setting(
        "30", "seconds running requests have to finish at shutdown", _number(0, 3600)
    )
    metrics_dir: str | None = _setting(
        "", "folder in which workers share metrics; set by `tradepost serve`", lambda text: text or None
    )

    @property
    def database_file(self) -> str | None:
        """The file of an embedded database; None with PostgreSQL."""
        embedded = self.database_url.startswith(_SQLITE)
        return unquote(self.database_url.removeprefix(_SQLITE)) if embedded else None


def load(environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """The settings of an environment; `options` of the command line win. Raises `BadSetting`."""
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
                "TRADEPOST_KEY",  # the API key of `tradepost listen`
            )
        ):
            message = f"{name} is not a setting; tradepost serve --help lists them"
            raise BadSetting(message)
    values: dict[str, Any] = {}
    for name, spec in fields.items():
        text = options.get(name)
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
    """The variable, default and meaning of each setting, for the help and the documentation."""
    return [
        (_PREFIX + name.upper(), spec.metadata["default"], spec.metadata["doc"])
        for name, spec in Settings.__dataclass_fields__.items()
    ]
