"""The key that seals secrets: made once, replaced without a gap, and missed before anything is served."""

import base64
import stat
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests import shop
from tests.flows.process import environment, run, serving
from tests.service import ENCRYPTION_KEY, Service
from tests.webhooks.courier import Courier, Receiver, an_endpoint
from tradepost.access.sealing import Sealer
from tradepost.problems import Unavailable
from tradepost.settings import BadSetting, load

OTHER_KEY = base64.b64encode(b"another key, of 32 bytes as well").decode()


def test_an_embedded_database_gets_a_key_file_of_its_own(new_database: Callable[[str], str]) -> None:
    """The first start makes the file beside the database, for its owner alone; later ones leave it as it is."""
    url = new_database("sqlite")
    path = Path(url.removeprefix("sqlite:///") + ".key")
    kept = []
    for _ in range(2):
        with serving(url):
            kept.append(path.read_text())
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept[0] == kept[1]
    assert len(base64.urlsafe_b64decode(kept[0])) == 32


def test_processes_that_start_together_use_one_key(tmp_path: Path) -> None:
    """Of many that find no key file one makes it, and what any of them seals all can open."""
    path = tmp_path / "shop.key"
    with ExitStack() as life:
        together = get_context("forkserver")
        barrier, sealed = together.Barrier(4), together.Queue()
        for _ in range(4):
            process = together.Process(target=_seal, args=(path, barrier, sealed))
            process.start()
            life.callback(process.join)
        texts = [sealed.get(timeout=30) for _ in range(4)]
    assert [Sealer((), path).open(text) for text in texts] == ["whsec_x"] * 4
    assert [each.name for each in tmp_path.iterdir()] == ["shop.key"]


def _seal(path: Path, barrier: Any, sealed: Any) -> None:
    """What one of the processes does, at the same moment as the others."""
    sealer = Sealer((), path)
    exists = Path.exists

    def looked(each: Path) -> bool:
        found = exists(each)
        barrier.wait(30)
        return found

    with patch.object(Path, "exists", looked):  # all look before one makes it
        sealed.put(sealer.seal("whsec_x"))


@pytest.mark.parametrize("content", ["", "rubbish", "AAAA"])
def test_a_key_file_that_holds_no_key_says_so(tmp_path: Path, content: str) -> None:
    """A spoilt key file is an error for the operator, with its path; a caller learns nothing of it."""
    path = tmp_path / "shop.key"
    path.write_text(content)
    with pytest.raises(Unavailable, match=r"shop\.key"):
        Sealer((), path).check()
    with pytest.raises(Unavailable) as refused:
        Sealer((), path).seal("whsec_x")
    assert "shop.key" not in refused.value.detail


def test_a_key_is_replaced_without_a_gap(
    engine: str, new_database: Callable[[str], str], new_service: Callable[..., Service]
) -> None:
    """With the new key first and the old one behind it, what was sealed with either is delivered."""
    url = new_database(engine)
    old = Service(url, webhook_allow_private="1")
    receiver = Receiver(old)
    an_endpoint(old, receiver.url)
    both = Service(url, webhook_allow_private="1", encryption_key=f"{OTHER_KEY},{ENCRYPTION_KEY}")
    newer = an_endpoint(both, receiver.url)
    courier = Courier(both)
    shop.a_user(both)
    courier.deliver()
    assert len(receiver.got) == 2
    assert sum(each.is_signed_with(newer["secret"]) for each in receiver.got) == 1
    courier.stop()
    receiver.stop()
    for service in (both, old):
        service.stop()


def test_another_key_stops_the_start(engine: str, new_service: Callable[..., Service]) -> None:
    """A process whose key does not open what is in the database does not start, and says what is wrong."""
    service = new_service(engine)
    an_endpoint(service, "https://192.0.9.1/hook")
    with pytest.raises(Unavailable, match="sealed with another key than that of TRADEPOST_ENCRYPTION_KEY"):
        Service(service.database_url, encryption_key=OTHER_KEY)


def test_production_on_postgresql_needs_a_key(new_database: Callable[[str], str]) -> None:
    """Where a key file would be one for each machine, the setting has to be there."""
    with pytest.raises(AssertionError, match="TRADEPOST_ENCRYPTION_KEY must be set"):
        run(environment(new_database("postgresql"), env="production"), "serve", "--port", "0")


@pytest.mark.parametrize("value", ["short", "c2hvcA==", "not base64 at all!", f"{ENCRYPTION_KEY},x"])
def test_a_bad_key_is_not_shown(value: str) -> None:
    """A value that is no key stops the start with a line that does not repeat it."""
    with pytest.raises(BadSetting, match="TRADEPOST_ENCRYPTION_KEY must be 32 random bytes") as refused:
        load({"TRADEPOST_ENCRYPTION_KEY": value})
    assert value not in str(refused.value)


def test_a_secret_that_cannot_be_opened_holds_up_no_other(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """Of two endpoints one's secret was spoilt in the database: the other gets its events all the same."""
    service = new_service(engine, webhook_allow_private="1")
    courier, receiver = Courier(service), Receiver(service)
    spoilt, sound = (an_endpoint(service, receiver.url) for _ in range(2))
    service.rows(f"UPDATE webhook_secrets SET sealed = 'rubbish' WHERE endpoint_id = '{spoilt['id']}'")
    shop.a_user(service)
    courier.deliver()
    assert [each.is_signed_with(sound["secret"]) for each in receiver.got] == [True]
    courier.stop()
    receiver.stop()
