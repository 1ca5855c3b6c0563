"""What `make run` adds to `tradepost serve`: data where there is none, a key that works, what to try next."""

import json
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tradepost.access.api_keys import Doorkeeper
from tradepost.access.caller import Caller
from tradepost.cli import demo, key_file, keys
from tradepost.cli.key_file import KEY_FILE
from tradepost.cli.store import opened
from tradepost.demo.fill import is_empty
from tradepost.perform import Performer
from tradepost.problems import Unauthenticated
from tradepost.settings import Settings

_COMMAND = ".venv/bin/tradepost"  # where `make run` has put it

_SECONDS = 10
_ACTIVE = "?status=ACTIVE&limit=50"


class _Got(NamedTuple):
    body: Any
    etag: str


async def prepare(found: Settings) -> str:
    """Fills an empty database, and returns a key that may do everything."""
    async with opened(found) as performer:
        if await is_empty(performer.database):
            await demo.fill(performer, found)
        return await _key(performer)


async def _key(performer: Performer) -> str:
    """The key of the file if it still works; else a new one."""
    stored = key_file.read()
    if stored and await _works(performer, stored):
        return stored
    key = await keys.make(performer, {"name": f"for development, in {KEY_FILE}", "scopes": ["admin"]})
    key_file.write(key)
    return key


async def _works(performer: Performer, key: str) -> bool:
    door = Doorkeeper(performer.database, performer.clock)
    try:
        found = door.caller(f"Bearer {key}".encode())
        caller = found if isinstance(found, Caller) else await found
    except Unauthenticated:
        return False
    finally:
        await door.finish()
    return "admin" in caller.scopes


@dataclass
class Welcome:
    """What is said once the service answers."""

    key: str

    def say(self, url: str) -> None:
        """Prints what to try, with what is really there."""
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)
        try:
            steps = list(self._steps(url))
        except (OSError, HTTPException):  # it stopped meanwhile
            return
        finally:
            self._connection.close()
        print(f"\nThe key in these lines is kept in {KEY_FILE}.", *steps, sep="\n\n", flush=True)

    def _steps(self, url: str) -> Iterator[str]:
        curl = f"curl -i -H 'Authorization: Bearer {self.key}'"
        newest = f"'{url}/v1/orders?sort=-id&limit=2'"
        yield f"# the newest orders, and behind `next` those before them\n{curl} {newest}"
        orders = self._get("/v1/orders?sort=-id&limit=1")
        if orders and orders.body["items"]:
            path = f"/v1/orders/{orders.body['items'][0]['id']}"
            order = self._get(path)
            etag = order.etag if order else "*"
            yield (
                "# one order, with its ETag; and again, which sends nothing as long as nothing has changed\n"
                f"{curl} {url}{path}\n{curl} -H {shlex.quote(f'If-None-Match: {etag}')} {url}{path}"
            )
        body = self._order()
        if body:
            yield (
                "# an order; however often it is sent, it is placed once\n"
                f"{curl} -H 'Content-Type: application/json' -H 'Idempotency-Key: {uuid.uuid4()}' \\\n"
                f"  -d '{json.dumps(body)}' {url}/v1/orders"
            )
        selection = "{ orders(first: 2) { nodes { total user { name } lineItems { quantity name } } } }"
        query = json.dumps({"query": selection})
        yield (
            "# the same orders by GraphQL, as deep as asked\n"
            f"{curl} -H 'Content-Type: application/json' \\\n  -d '{query}' {url}/graphql"
        )
        yield f"# what happens from now on, as signed webhooks\n{_COMMAND} listen --register {url}"
        yield f"# to read and to try\n{url}/docs\n{url}/v1/openapi.json\n{url}/graphql"

    def _order(self) -> dict[str, Any] | None:
        """An order that somebody could place now."""
        users, products = self._get(f"/v1/users{_ACTIVE}"), self._get(f"/v1/products{_ACTIVE}")
        buyers = users.body["items"] if users else []
        goods = [each for each in products.body["items"] if each["stock"] != 0] if products else []
        if not buyers or not goods:
            return None
        line = {"productId": goods[0]["id"], "quantity": 1}
        return {"userId": buyers[0]["id"], "lineItems": [line]}

    def _get(self, path: str) -> _Got | None:
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
        response = self._connection.getresponse()
        body = response.read()
        if response.status != HTTPStatus.OK:
            return None
        return _Got(json.loads(body), response.headers["ETag"] or "*")
