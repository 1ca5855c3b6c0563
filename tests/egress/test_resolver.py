"""Looking names up: apart from everything else, once for all who ask, and judged before it is used."""

import asyncio
import gc
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.egress.receiving import WAIT
from tests.egress.zone import OTHER, PUBLIC, Seconds, Zone
from tradepost.egress.addresses import Blocked
from tradepost.egress.resolver import Lookup, NameResolver

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@asynccontextmanager
async def looking_up(lookup: Lookup, **options: Any) -> AsyncIterator[NameResolver]:
    names = NameResolver(allow_private=False, lookup=lookup, **options)
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
        async with looking_up(zone, monotonic=now) as names:
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


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("count", [31, 64, 300])
def test_silent_names_do_not_hold_up_others(run: Run, count: int) -> None:
    """However many look-ups hang, names found before and new ones are found, and the loop's threads are free."""

    async def scene() -> None:
        silent = [f"silent{number}" for number in range(count)]
        now, zone = Seconds(), Zone(*silent, shop=[[PUBLIC]], new=[[OTHER]])
        async with looking_up(zone, monotonic=now) as names:
            await names.addresses("shop")
            now.passed = 31.0
            hanging = [asyncio.create_task(names.addresses(host)) for host in silent]
            await asyncio.sleep(0)
            assert await names.addresses("shop") == (PUBLIC,)
            assert await names.addresses("new") == (OTHER,)
            assert await asyncio.to_thread(lambda: "free") == "free"
            assert not any(task.done() for task in hanging)
            zone.speak.set()
            await asyncio.wait(hanging)
            assert all(isinstance(task.exception(), socket.gaierror) for task in hanging)

    run(scene())


@pytest.mark.usefixtures("impatient")
def test_while_a_name_is_silent_its_old_answer_stands_for_ten_minutes(run: Run) -> None:
    """A name that nobody answers for any more is where it was, without waiting again, and after a while nowhere."""

    async def scene() -> None:
        now, zone = Seconds(), Zone(shop=[[PUBLIC], [OTHER]])
        async with looking_up(zone, monotonic=now) as names:
            await names.addresses("shop")
            zone.silent.add("shop")
            for now.passed in (30.1, 60.2, 629.0):
                assert await names.addresses("shop") == (PUBLIC,)
                async with asyncio.timeout(0):  # not even a turn of the loop
                    assert await names.addresses("shop") == (PUBLIC,)
            now.passed = 630.1
            asking = asyncio.create_task(names.addresses("shop"))
            await asyncio.wait([asking], timeout=0.2)
            assert not asking.done()
            zone.speak.set()
            assert await asking == (OTHER,)
            assert zone.asked == ["shop", "shop"]

    run(scene())


@pytest.mark.usefixtures("impatient")
def test_a_late_answer_replaces_the_old_one(run: Run) -> None:
    """What a silent name says in the end is judged, and counts from then on: it is refused if it may not be."""

    async def scene() -> None:
        now, zone = Seconds(), Zone(shop=[[PUBLIC], ["127.0.0.1"]])
        async with looking_up(zone, monotonic=now) as names:
            await names.addresses("shop")
            zone.silent.add("shop")
            now.passed = 31.0
            assert await names.addresses("shop") == (PUBLIC,)
            zone.speak.set()
            await asyncio.wait(names._running.values())
            with pytest.raises(Blocked):
                await names.addresses("shop")

    run(scene())


@pytest.mark.parametrize(
    ("code", "stands"), [(socket.EAI_AGAIN, True), (socket.EAI_NONAME, False), (socket.EAI_FAIL, False)]
)
def test_a_failure_that_says_nothing_of_the_name_leaves_the_old_answer(
    run: Run, code: int, stands: bool
) -> None:
    """When the name server fails for now, the old answer stands; when it says there is no such name, it is gone."""
    answers: list[str | int] = [PUBLIC, code]

    def find(host: str) -> list[str]:
        answer = answers.pop(0)
        if isinstance(answer, int):
            raise socket.gaierror(answer, "no")
        return [answer]

    async def scene() -> None:
        now = Seconds()
        async with looking_up(find, monotonic=now) as names:
            await names.addresses("shop")
            now.passed = 31.0
            if stands:
                assert await names.addresses("shop") == (PUBLIC,)
                return
            with pytest.raises(socket.gaierror):
                await names.addresses("shop")
            answers.append(OTHER)
            assert await names.addresses("shop") == (OTHER,)

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
            await asyncio.wait(names._running.values())
            gc.collect()

    with caplog.at_level(logging.DEBUG):
        run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_closing_ends_the_waiting(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Who waits for a name when look-ups end is told it is not found, and so is who asks later, for any name."""

    async def scene() -> None:
        zone = Zone("slow", shop=[[PUBLIC]])
        async with looking_up(zone) as names:
            await names.addresses("shop")
            asking = asyncio.create_task(names.addresses("slow"))
            await asyncio.sleep(0)
            await names.close()
            for asked in (asking, names.addresses("shop")):
                with pytest.raises(OSError, match="no longer"):
                    await asked
        zone.speak.set()

    run(scene())
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_process_ends_while_names_are_silent() -> None:
    """Nobody waits for a look-up that hangs when the process has closed its names and is done."""
    process = """
import asyncio, threading
from tradepost.egress.resolver import NameResolver

begun = threading.Event()

def find(host):
    begun.set()
    threading.Event().wait()

async def scene():
    names = NameResolver(allow_private=False, lookup=find)
    asking = asyncio.create_task(names.addresses("silent"))
    await asyncio.to_thread(begun.wait)
    await names.close()
    try:
        await asking
    except OSError as error:
        print(error)

asyncio.run(scene())
"""
    ended = subprocess.run([sys.executable, "-c", process], capture_output=True, timeout=WAIT, check=True)
    assert (ended.stdout, ended.stderr) == (b"names are no longer looked up\n", b"")


def test_the_systems_own_resolver_is_asked(run: Run) -> None:
    """Without a look-up of its own, a name is what the system says it is: localhost is this machine."""

    async def scene() -> None:
        names = NameResolver(allow_private=True)
        try:
            assert set(await names.addresses("localhost")) <= {"127.0.0.1", "::1"}
        finally:
            await names.close()

    run(scene())
