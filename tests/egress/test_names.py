"""Looking names up: apart from everything else, once for all who ask, and judged before it is used."""

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.egress.receiving import WAIT
from tests.egress.zone import OTHER, PUBLIC, Seconds, Zone
from tradepost.egress.addresses import Blocked
from tradepost.egress.names import Find, Names

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@asynccontextmanager
async def looking_up(find: Find, **options: Any) -> AsyncIterator[Names]:
    names = Names(allow_private=False, find=find, **options)
    try:
        async with asyncio.timeout(WAIT):
            yield names
    finally:
        await names.close()


def test_addresses_come_as_aiohttp_wants_them(run: Run) -> None:
    """A resolution has each address once, of the family asked for, with the port, and to be taken literally."""

    async def scene() -> None:
        async with looking_up(Zone(shop=[[PUBLIC, OTHER, PUBLIC]])) as names:
            found = await names.resolve("shop", 443)
            assert [(one["host"], one["port"], one["family"]) for one in found] == [
                (PUBLIC, 443, socket.AF_INET),
                (OTHER, 443, socket.AF_INET6),
            ]
            assert all(one["flags"] & socket.AI_NUMERICHOST for one in found)
            assert [one["host"] for one in await names.resolve("shop", 443, socket.AF_INET6)] == [OTHER]

    run(scene())


@pytest.mark.parametrize("addresses", [["127.0.0.1"], [PUBLIC, "127.0.0.1"], [PUBLIC, OTHER, "fe80::1%eth0"]])
def test_one_bad_address_refuses_all(run: Run, addresses: list[str]) -> None:
    """A name of which any address may not be dialled is refused as a whole."""

    async def scene() -> None:
        async with looking_up(Zone(shop=[addresses])) as names:
            with pytest.raises(Blocked, match=r"loopback|link-local"):
                await names.resolve("shop")

    run(scene())


def test_a_name_without_an_address_is_not_found(run: Run) -> None:
    """A look-up that finds nothing fails as one that the system says failed."""

    async def scene() -> None:
        async with looking_up(Zone(shop=[[]])) as names:
            with pytest.raises(socket.gaierror):
                await names.addresses("shop")

    run(scene())


def test_good_answers_are_kept_for_half_a_minute(run: Run) -> None:
    """Within half a minute a name is looked up once; then again, and the new answer is judged as the first."""

    async def scene() -> None:
        now, zone = Seconds(), Zone(shop=[[PUBLIC], ["127.0.0.1"]])
        async with looking_up(zone, now=now) as names:
            for now.passed in (0.0, 10.0, 29.9):
                assert await names.addresses("shop") == (PUBLIC,)
            assert zone.asked == ["shop"]
            now.passed = 30.1
            with pytest.raises(Blocked):
                await names.addresses("shop")

    run(scene())


def test_bad_answers_are_not_kept(run: Run) -> None:
    """A name that was refused or not found is asked for anew the next time."""

    async def scene() -> None:
        zone = Zone(shop=[["10.0.0.1"], [], [PUBLIC]])
        async with looking_up(zone) as names:
            for _ in range(2):
                with pytest.raises(OSError, match=r"private|no address"):
                    await names.addresses("shop")
            assert await names.addresses("shop") == (PUBLIC,)

    run(scene())


def test_however_many_ask_a_name_is_looked_up_once(run: Run) -> None:
    """Those who ask while a look-up is under way share it, also when the first of them has left."""

    async def scene() -> None:
        zone = Zone("slow", slow=[[PUBLIC]])
        async with looking_up(zone) as names:
            asking = [asyncio.create_task(names.addresses("slow")) for _ in range(20)]
            await asyncio.sleep(0)
            asking[0].cancel()
            await asyncio.wait([asking[0]])
            zone.speak.set()
            assert await asyncio.gather(*asking[1:]) == [(PUBLIC,)] * 19
            assert zone.asked == ["slow"]

    run(scene())


def test_silent_names_do_not_hold_up_others(run: Run) -> None:
    """While many look-ups hang, another name is found, and the loop's own threads are free."""

    async def scene() -> None:
        silent = [f"silent{number}" for number in range(31)]
        zone = Zone(*silent, shop=[[PUBLIC]])
        async with looking_up(zone) as names:
            hanging = [asyncio.create_task(names.addresses(host)) for host in silent]
            await asyncio.sleep(0)
            assert await names.addresses("shop") == (PUBLIC,)
            assert await asyncio.to_thread(lambda: "free") == "free"
            assert not any(task.done() for task in hanging)
            zone.speak.set()
            await asyncio.wait(hanging)
            assert all(isinstance(task.exception(), socket.gaierror) for task in hanging)

    run(scene())


def test_those_who_leave_leave_no_warning(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """A look-up that fails after everybody has left is nobody's unretrieved exception."""

    async def scene() -> None:
        zone = Zone("slow", slow=[["127.0.0.1"]])
        async with looking_up(zone) as names:
            asking = [asyncio.create_task(names.addresses("slow")) for _ in range(3)]
            await asyncio.sleep(0)
            for task in asking:
                task.cancel()
            await asyncio.wait(asking)
            zone.speak.set()
            await asyncio.wait(names._finding.values())
            gc.collect()

    with caplog.at_level(logging.DEBUG):
        run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_closing_ends_the_waiting(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Who waits for a name when look-ups end is told it is not found, and so is who asks later."""

    async def scene() -> None:
        zone = Zone("slow")
        async with looking_up(zone) as names:
            asking = asyncio.create_task(names.addresses("slow"))
            await asyncio.sleep(0)
            await names.close()
            for asked in (asking, names.addresses("shop")):
                with pytest.raises(OSError, match="any more"):
                    await asked
        zone.speak.set()

    run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_systems_own_resolver_is_asked(run: Run) -> None:
    """Without a look-up of its own, a name is what the system says it is: localhost is this machine."""

    async def scene() -> None:
        names = Names(allow_private=True)
        try:
            assert set(await names.addresses("localhost")) <= {"127.0.0.1", "::1"}
        finally:
            await names.close()

    run(scene())
