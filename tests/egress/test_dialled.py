"""The address that is connected to is the one that was judged, whatever names say before or afterwards."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from yarl import URL

from tests.egress.receiving import NO_CONTENT, WAIT, Receiver, answering, post, posting, receiving
from tests.egress.zone import PUBLIC, Seconds, Zone
from tradepost.egress.client import Client
from tradepost.egress.resolver import NameResolver
from tradepost.egress.targets import Target, Targets

Run = Callable[[Coroutine[Any, Any, Any]], Any]

NAME = "hooks.example.com"


class Unjudging(Targets):
    """Lets every URL pass, as if its judgement had a hole."""

    def target(self, url: str) -> Target:
        return Target(URL(url), None, None)


@asynccontextmanager
async def in_production(
    *answers: list[str], now: Seconds | None = None, kind: type[Targets] = Targets
) -> AsyncIterator[tuple[Client, Targets, Receiver, str]]:
    """A client that may post to public addresses alone, and a receiver on loopback whose name finds these."""
    now = now or Seconds()
    names = NameResolver(allow_private=False, lookup=Zone(**{NAME: answers}), monotonic=now)
    targets = kind(allow_private=False, resolver=names)
    client = Client(targets, seconds=WAIT)
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving(answering(NO_CONTENT)))
        stack.push_async_callback(targets.close)
        stack.push_async_callback(client.close)
        yield client, targets, receiver, f"https://{NAME}:{receiver.port}/hook"


@pytest.mark.parametrize(
    "found", [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1", PUBLIC], ["::ffff:127.0.0.1"]]
)
def test_a_name_that_finds_loopback_is_not_dialled(run: Run, found: list[str]) -> None:
    """A name with any loopback address is an error, and no connection is made."""

    async def scene() -> None:
        async with in_production(found) as (client, _, receiver, url):
            reply = await post(client, url)
            assert (reply.status, reply.error) == (None, "the address is not allowed: a loopback address")
            assert not receiver.connections

    run(scene())


def test_a_name_that_changes_its_mind_is_not_dialled(run: Run) -> None:
    """A name that found a public address when it was registered, and loopback when it is used, is refused."""

    async def scene() -> None:
        now = Seconds()
        async with in_production([PUBLIC], ["127.0.0.1"], now=now) as (client, targets, receiver, url):
            await targets.look_up(url)
            assert targets.refusal(url) is None
            now.passed = 31.0
            reply = await post(client, url)
            assert reply.error == "the address is not allowed: a loopback address"
            assert not receiver.connections

    run(scene())


def test_a_name_of_metadata_is_refused_in_development_as_well(run: Run) -> None:
    """Development lets any name pass, and still none that finds a cloud's metadata: neither registered nor dialled."""

    async def scene() -> None:
        name = "metadata.google.internal"
        async with posting(lookup=Zone(**{name: [["169.254.169.254"]]})) as client:
            url = f"http://{name}/"
            assert client._targets.refusal(url) is None
            assert (await post(client, url)).error == "the address is not allowed: a cloud's metadata address"
            await client._targets.look_up(url)
            assert client._targets.refusal(url) == "points at a cloud's metadata address"

    run(scene())


def test_what_a_look_up_found_keeps_a_name_from_being_dialled(run: Run) -> None:
    """A host that is known to point where it may not is not even looked up."""

    async def scene() -> None:
        async with in_production(["10.0.0.1"], ["127.0.0.1"]) as (client, targets, _, url):
            await targets.look_up(url)
            assert (await post(client, url)).error == "the address is not allowed: a private address"

    run(scene())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_the_socket_is_a_gate_of_its_own(run: Run, host: str) -> None:
    """An IP address in a URL, which aiohttp looks up nowhere, is refused where its socket is made."""

    async def scene() -> None:
        async with in_production(kind=Unjudging) as (client, _, receiver, _):
            reply = await post(client, f"http://{host}:{receiver.port}/")
            assert reply.status is None
            assert reply.error == "the address is not allowed: a loopback address"
            assert not receiver.connections

    run(scene())


def test_the_address_that_was_found_is_the_one_dialled(run: Run) -> None:
    """One look-up serves registration and POST; what a second one would say is nobody's address."""

    async def scene() -> None:
        zone = Zone(**{NAME: [["127.0.0.1"], ["127.0.0.2"]]})
        async with receiving(answering(NO_CONTENT)) as receiver, posting(lookup=zone) as client:
            url = f"http://{NAME}:{receiver.port}/hook"
            await client._targets.look_up(url)
            assert [(await post(client, url)).status for _ in range(2)] == [204, 204]
            assert zone.asked == [NAME]
            assert [fields["Host"] for _, fields, _ in receiver.requests] == [f"{NAME}:{receiver.port}"] * 2

    run(scene())


def test_an_address_that_does_not_answer_gives_way_to_the_next(run: Run) -> None:
    """Of several addresses that may be dialled the first that takes the connection has it."""

    async def scene() -> None:
        zone = Zone(**{NAME: [["127.0.0.2", "::1", "127.0.0.1"]]})
        async with receiving(answering(NO_CONTENT)) as receiver, posting(lookup=zone) as client:
            assert (await post(client, f"http://{NAME}:{receiver.port}/hook")).status == 204

    run(scene())


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1."])
def test_an_odd_spelling_reaches_the_address_it_spells(run: Run, spelling: str) -> None:
    """Where loopback is allowed, it is reached under each of its spellings."""

    async def scene() -> None:
        async with receiving(answering(NO_CONTENT)) as receiver, posting() as client:
            assert (await post(client, f"http://{spelling}:{receiver.port}/")).status == 204
            assert receiver.requests[0][1]["Host"] == f"127.0.0.1:{receiver.port}"

    run(scene())


def test_names_that_hang_hold_up_no_other_post(run: Run) -> None:
    """While the names of some receivers are not answered for, others are posted to."""

    async def scene() -> None:
        silent = [f"silent{number}.example.com" for number in range(20)]
        zone = Zone(*silent, **{NAME: [["127.0.0.1"]]})
        async with receiving(answering(NO_CONTENT)) as receiver, posting(lookup=zone, seconds=1) as client:
            waiting = [asyncio.create_task(post(client, f"http://{host}/")) for host in silent]
            await asyncio.sleep(0)
            reply = await post(client, f"http://{NAME}:{receiver.port}/")
            assert reply.status == 204
            assert {late.error for late in await asyncio.gather(*waiting)} == {"timed out after 1 s"}
            zone.speak.set()

    run(scene())
