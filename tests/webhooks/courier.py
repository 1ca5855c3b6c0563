"""A courier: delivers what is due when a test says so, by the production worker; and receivers to deliver to."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from aiohttp import web

from tests import shop
from tests.service import Service
from tests.waiting import Changes, until
from tradepost.assembly import Deliveries
from tradepost.webhooks import VerificationError, verify

HANG = -1  # instead of a status: no answer until it is released
Answer = Callable[["Delivery"], Any]  # a status or HANG, or (status, headers)


class Delivery(NamedTuple):
    """A request that a receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return str(self.event["id"])

    def is_signed_with(self, secret: str) -> bool:
        try:
            verify(self.body, self.headers.get("x-signature-256"), secret, tolerance=10**12)
        except VerificationError:
            return False
        return True


class Receiver:
    """A server on loopback that keeps what it gets and answers as it is told."""

    def __init__(self, service: Service, answer: Answer | int = 204) -> None:
        self.got: list[Delivery] = []
        self.answer: Answer | int = answer
        self.now_open = 0
        self.most_open = 0
        self._service = service
        self._runner: web.AppRunner | None = None
        self._released = asyncio.Event()
        self._came = Changes()
        self._late_answer = 204
        self.url = service.run(self._start())

    def stop(self) -> None:
        self._service.run(self._stop())

    def release(self, answer: int = 204) -> None:
        """Ends all hanging with an answer, which is also what others get from now on."""
        self._service.run(self._release(answer))

    def wait_for(self, count: int) -> None:
        """Waits until so many requests are open."""
        self._service.run(self._came.until(lambda: self.now_open >= count))

    def ids(self) -> list[str]:
        """The ids of all that it got."""
        return [each.id for each in self.got]

    async def _release(self, answer: int) -> None:
        self.answer = self._late_answer = answer
        self._released.set()
        self._released = asyncio.Event()

    async def _start(self) -> str:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}/hook"

    async def _stop(self) -> None:
        self._released.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        delivery = Delivery(request.path, headers, body)
        self.got.append(delivery)
        self.now_open += 1
        self.most_open = max(self.most_open, self.now_open)
        self._came.tell()
        try:
            answer = self.answer(delivery) if callable(self.answer) else self.answer
            if answer == HANG:
                await self._released.wait()
                answer = self._late_answer
            status, fields = answer if isinstance(answer, tuple) else (answer, {})
            return web.Response(status=status, headers=fields)
        finally:
            self.now_open -= 1


class Courier:
    """Delivers for a service that leaves it to others."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.deliveries = service.run(self._made())

    async def _made(self) -> Deliveries:
        return Deliveries(self.service.settings, self.service.app.rest.performer, self.service.app.metrics)

    def stop(self) -> None:
        self.service.run(self.deliveries.stop())

    def deliver(self) -> None:
        """Delivers until nothing is due and nothing is out."""
        self.service.run(self._deliver())

    def turn(self) -> float:
        """One turn: writes down what has ended, claims what is due and begins to send it."""
        return self.service.run(self.deliveries.worker.turn())

    def settle(self) -> None:
        """Waits until nothing is out; what has ended is not written down yet."""
        self.service.run(self.deliveries.worker.settle())

    def deliver_until(self, holds: Callable[[], bool]) -> None:
        """Turn after turn, waiting for nothing that is out, until something holds."""
        self.service.run(until(holds, self.deliveries.worker.turn))

    def release(self) -> None:
        """Puts back what is claimed by those who did not come back."""
        self.service.run(self.deliveries.upkeep.release())

    def die(self) -> None:
        """Breaks off what is out, as kill -9 does: nothing of it is ever written down."""
        self.service.run(self._die())

    async def _die(self) -> None:
        out = list(self.deliveries.worker._attempts)
        for each in out:
            each.cancel()
        await asyncio.gather(*out, return_exceptions=True)
        self.deliveries.worker._ended.clear()

    async def _deliver(self) -> None:
        worker = self.deliveries.worker
        while True:
            await worker.turn()
            if worker.idle:
                return
            await worker.settle()


def an_endpoint(service: Service, url: str, *types: str, **members: Any) -> Any:
    """A webhook endpoint, with its secret."""
    body = {"url": url, "eventTypes": list(types or ("user.created",)), **members}
    return service.made("/v1/webhook-endpoints", body)


def events(service: Service, count: int) -> list[str]:
    """Makes so many events, at once: the users they are about."""
    bodies = [("POST", "/v1/users", shop.user_body()) for _ in range(count)]
    made = service.calls(*bodies)
    assert {each.status for each in made} <= {201}
    return [each.json["id"] for each in made]


def a_secret(service: Service, endpoint: Any) -> Any:
    """A new current secret of an endpoint, with its value."""
    return service.made(f"/v1/webhook-endpoints/{endpoint['id']}/secrets", {})


def deliveries_of(service: Service, endpoint: Any) -> list[Any]:
    """The deliveries of an endpoint, oldest first."""
    return shop.walked(service, f"/v1/webhook-deliveries?endpointId={endpoint['id']}&limit=200")
