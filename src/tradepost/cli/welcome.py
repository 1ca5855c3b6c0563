"""What `make run` adds to `tradepost serve`: demo data, an API key, and commands to try."""

import json
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tradepost.access.api_keys import Authenticator
from tradepost.access.caller import Caller
from tradepost.cli import demo, key_file, keys
from tradepost.cli.key_file import KEY_FILE
from tradepost.cli.store import opened
from tradepost.demo.fill import is_empty
from tradepost.perform import Performer
from tradepost.problems import Unauthenticated
from tradepost.settings import Settings

_COMMAND = ".venv/bin/tradepost"  # where `make run` installs it

_SECONDS = 10
_ACTIVE = "?status=ACTIVE&limit=50"


class _Item(NamedTuple):
    body: Any
    etag: str


async def prepare(settings: Settings) -> str:
    """Adds demo data to an empty database, and returns an API key with the scope admin."""
    async with opened(settings) as performer:
        if await is_empty(performer.database):
            await demo.fill(performer, settings)
        return await _key(performer)


async def _key(performer: Performer) -> str:
    """The stored key if it is still valid; otherwise a new one."""
    stored = key_file.read()
    if stored and await _works(performer, stored):
        return stored
    key = await keys.make(performer, {"name": f"for development, in {KEY_FILE}", "scopes": ["admin"]})
    key_file.write(key)
    return key


async def _works(performer: Performer, key: str) -> bool:
    authenticator = Authenticator(performer.database, performer.clock)
    try:
        remembered = authenticator.caller(f"Bearer {key}".encode())
        caller = remembered if isinstance(remembered, Caller) else await remembered
    except Unauthenticated:
        return False
    finally:
        await authenticator.finish()
    return "admin" in caller.scopes


@dataclass
class Welcome:
    """The commands that are printed once the service answers."""

    key: str

    def say(self, url: str) -> None:
        """Prints commands to try, with ids from the database."""
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=_SECONDS)
        try:
            steps = list(self._steps(url))
        except (OSError, HTTPException):  # the service has stopped again
            return
        finally:
            self._connection.close()
        print(f"\nThe API key in these commands is stored in {KEY_FILE}.", *steps, sep="\n\n", flush=True)

    def _steps(self, url: str) -> Iterator[str]:
        curl = f"curl -i -H 'Authorization: Bearer {self.key}'"
        newest = f"'{url}/v1/orders?sort=-id&limit=2'"
        yield f"# the newest orders; `next` links to the older ones\n{curl} {newest}"
        orders = self._get("/v1/orders?sort=-id&limit=1")
        if orders and orders.body["items"]:
            path = f"/v1/orders/{orders.body['items'][0]['id']}"
            order = self._get(path)
            etag = order.etag if order else "*"
            yield (
                "# one order with its ETag, and again: 304 without a body as long as it is unchanged\n"
                f"{curl} {url}{path}\n{curl} -H {shlex.quote(f'If-None-Match: {etag}')} {url}{path}"
            )
        body = self._order()
        if body:
            yield (
                "# place an order; sent again, it is placed only once\n"
                f"{curl} -H 'Content-Type: application/json' -H 'Idempotency-Key: {uuid.uuid4()}' \\\n"
                f"  -d '{json.dumps(body)}' {url}/v1/orders"
            )
        selection = "{ orders(first: 2) { nodes { total user { name } lineItems { quantity name } } } }"
        query = json.dumps({"query": selection})
        yield (
            "# the same orders by GraphQL, with the related items you select\n"
            f"{curl} -H 'Content-Type: application/json' \\\n  -d '{query}' {url}/graphql"
        )
        yield f"# everything that happens from now on, as signed webhooks\n{_COMMAND} listen --register {url}"
        yield f"# documentation and a GraphQL page\n{url}/docs\n{url}/v1/openapi.json\n{url}/graphql"

    def _order(self) -> dict[str, Any] | None:
        """The body of an order that can be placed now."""
        users, products = self._get(f"/v1/users{_ACTIVE}"), self._get(f"/v1/products{_ACTIVE}")
        buyers = users.body["items"] if users else []
        goods = [each for each in products.body["items"] if each["stock"] != 0] if products else []
        if not buyers or not goods:
            return None
        line = {"productId": goods[0]["id"], "quantity": 1}
        return {"userId": buyers[0]["id"], "lineItems": [line]}

    def _get(self, path: str) -> _Item | None:
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
        response = self._connection.getresponse()
        body = response.read()
        if response.status != HTTPStatus.OK:
            return None
        return _Item(json.loads(body), response.headers["ETag"] or "*")
