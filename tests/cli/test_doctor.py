"""What `tradepost doctor` finds, and that it changes nothing."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import shop
from tests.cli.conftest import Commands
from tests.given_clock import GivenClock
from tests.service import ENCRYPTION_KEY, Service


@pytest.fixture
def free_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port that the service could listen on."""
    with socket.create_server(("127.0.0.1", 0)) as tried:
        port: int = tried.getsockname()[1]
    monkeypatch.setenv("TRADEPOST_PORT", str(port))
    return port


@pytest.mark.usefixtures("free_port")
def test_all_is_well_on_a_new_database(tradepost: Commands, tmp_path: Path) -> None:
    """On a database that can be served every check says ok or, for want of a key, warn; exit status 0."""
    ended = tradepost("doctor")
    lines = ended.out.splitlines()
    assert ended.status == 0
    # The tests' own PostgreSQL need not survive a power cut, and the doctor says so.
    assert [line for line in lines if not line.startswith("ok    ") and "fsync" not in line] == [
        "warn  there is no API key: create one with `tradepost keys create`"
    ]
    for what in (
        "Python 3",
        "SQLite 3",
        "the schema is at",
        "writes work, and roll back",
        " is free",
    ):
        assert any(what in line for line in lines), what
    tradepost.done("keys", "create")
    assert "ok    1 API key" in tradepost.done("doctor")
    assert tradepost.exported("orders", tmp_path) == []


def failures(tradepost: Commands) -> list[str]:
    ended = tradepost("doctor")
    found = [line for line in ended.out.splitlines() if line.startswith("fail  ")]
    assert ended.status == bool(found)
    return found


@pytest.mark.usefixtures("free_port")
def test_a_database_out_of_reach_fails_without_its_password(commands: Callable[[str], Commands]) -> None:
    """A server that does not answer is a failure with advice, and no password is ever said."""
    tradepost = commands("sqlite")
    tradepost.url = "postgresql://somebody:secret@127.0.0.1:1/none"
    (failure,) = failures(tradepost)
    assert "PostgreSQL cannot be reached" in failure
    assert "TRADEPOST_DATABASE_URL" in failure
    assert "secret" not in tradepost("doctor").out


@pytest.mark.usefixtures("free_port")
def test_a_database_without_schema_fails(commands: Callable[[str], Commands], postgres_empty: str) -> None:
    """Where there is no schema the doctor says what to run."""
    tradepost = commands("sqlite")
    tradepost.url = postgres_empty
    (failure,) = failures(tradepost)
    assert "run `tradepost migrate`" in failure


@pytest.mark.usefixtures("free_port")
def test_the_doctor_makes_no_database(commands: Callable[[str], Commands], tmp_path: Path) -> None:
    """An embedded database that is not there yet is a warning, and is still not there afterwards."""
    tradepost = commands("sqlite")
    tradepost.url = f"sqlite:///{tmp_path}/new.db"
    assert failures(tradepost) == []
    assert "there is no database at" in tradepost("doctor").out
    assert list(tmp_path.iterdir()) == []
    tradepost.url = f"sqlite:///{tmp_path}/missing/new.db"
    (failure,) = failures(tradepost)
    assert "there is no folder" in failure


def test_a_port_that_is_taken_fails(
    commands: Callable[[str], Commands], free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port on which something else listens is a failure, and named."""
    tradepost = commands("sqlite")
    with socket.create_server(("127.0.0.1", free_port)) as other:
        other.settimeout(0)
        monkeypatch.setattr("tradepost.cli.checkup.machine._TIMEOUT_SECONDS", 0.1)
        (failure,) = failures(tradepost)
    assert f"127.0.0.1:{free_port} is taken" in failure


@pytest.mark.usefixtures("free_port")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TRADEPOST_REDIS_URL", "redis://127.0.0.1:1", "fail  Redis does not answer"),
        ("TRADEPOST_RATE_LIMIT", "many", "fail  TRADEPOST_RATE_LIMIT='many'"),
        (
            "TRADEPOST_API_VERSIONS",
            '{"v1": {"sunset": "2026-01-01"}}',
            "fail  all API versions are retired",
        ),
        ("TRADEPOST_API_VERSIONS", '{"v9": {}}', "warn  TRADEPOST_API_VERSIONS names v9"),
        ("TRADEPOST_API_VERSIONS", '{"v1": {"deprecated": "2026-01-01"}}', "ok    v1 is deprecated"),
    ],
)
def test_what_is_set_wrong_is_said(
    commands: Callable[[str], Commands], monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """A setting that cannot work, or that announces an end, has its line."""
    tradepost = commands("sqlite")
    monkeypatch.setenv(name, value)
    assert said in tradepost("doctor").out
    assert bool(failures(tradepost)) == said.startswith("fail")


@pytest.mark.usefixtures("free_port")
@pytest.mark.parametrize(
    ("env", "base_url", "warned"),
    [
        ("production", "", True),
        ("production", "https://api.example.com", False),
        ("development", "", False),
    ],
)
def test_production_has_to_know_its_address(
    commands: Callable[[str], Commands],
    monkeypatch: pytest.MonkeyPatch,
    env: str,
    base_url: str,
    warned: bool,
) -> None:
    """In production without TRADEPOST_BASE_URL the doctor warns that a caller's Host is believed; it still ends with 0."""
    monkeypatch.setenv("TRADEPOST_ENV", env)
    monkeypatch.setenv("TRADEPOST_BASE_URL", base_url)
    lines = commands("sqlite").done("doctor").splitlines()
    assert any(line.startswith("warn  TRADEPOST_BASE_URL is not set") for line in lines) == warned


@pytest.mark.usefixtures("free_port")
@pytest.mark.parametrize(("size", "level"), [(0, "ok"), (499_000_000, "ok"), (501_000_000, "warn")])
def test_a_long_log_is_a_warning(commands: Callable[[str], Commands], size: int, level: str) -> None:
    """Above 500 MB of write-ahead log the doctor says to look for a reader that stays open."""
    tradepost = commands("sqlite")
    with Path(f"{tradepost.url.removeprefix('sqlite:///')}-wal").open("wb") as log:
        log.truncate(size)
    [line] = [line for line in tradepost.done("doctor").splitlines() if "write-ahead log" in line]
    assert line.startswith(level)
    assert ("a reader that stays open" in line) == (level == "warn")


@pytest.mark.usefixtures("free_port")
def test_webhook_secrets_that_cannot_be_opened_fail(
    new_service: Callable[..., Service], commands: Callable[[str], Commands], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets that were sealed with another key are a failure, and with the right one are not."""
    service = new_service("sqlite")
    service.made("/v1/webhook-endpoints", {"url": "https://192.0.9.1/hook"})
    tradepost = commands("sqlite")
    tradepost.url = service.database_url
    monkeypatch.setenv("TRADEPOST_ENCRYPTION_KEY", ENCRYPTION_KEY)
    assert "ok    webhook secrets can be decrypted" in tradepost.done("doctor")
    monkeypatch.setenv("TRADEPOST_ENCRYPTION_KEY", "A" * 43 + "=")
    (failure,) = failures(tradepost)
    assert "sealed with another key" in failure


@pytest.mark.usefixtures("free_port")
def test_deliveries_that_nobody_makes_are_noticed(
    new_service: Callable[..., Service], commands: Callable[[str], Commands], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has been due for long is a warning: nobody delivers, or a receiver does not answer."""
    service = new_service("sqlite", clock=GivenClock())
    service.made("/v1/webhook-endpoints", {"url": "https://192.0.9.1/hook"})
    shop.a_user(service)
    tradepost = commands("sqlite")
    tradepost.url = service.database_url
    monkeypatch.setenv("TRADEPOST_ENCRYPTION_KEY", ENCRYPTION_KEY)
    assert "warn  pending deliveries: 1, the oldest overdue by" in tradepost.done("doctor")
