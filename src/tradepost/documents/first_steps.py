"""First steps: commands to paste into a shell, from an empty shop to a fulfilled order.

Every command can be run again: those that create something have an idempotency key, and those that need an id
look it up. The names of members are those of the examples of the API version.
"""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tradepost.rest.openapi.examples import sample_id

Json = dict[str, Any]

_KEY = '-H "Authorization: Bearer $KEY"'
_TYPE = '-H "Content-Type: application/json"'
_FIRST_ID = 'grep -o \'"id":"[^"]*\' | head -1 | cut -d \'"\' -f 4'
_COLLECTIONS = ("users", "products", "orders")


class Step(NamedTuple):
    """A sentence and its commands."""

    text: str
    lines: str


def first_steps(document: Json, base_url: str) -> list[Step]:
    """The steps in an API version; none if it lacks one of the collections."""
    version = document["info"]["version"]
    if any(f"/{version}/{name}" not in document["paths"] for name in _COLLECTIONS):
        return []
    return list(_Walk(document, version, base_url).steps())


@dataclass
class _Walk:
    document: Json
    version: str
    base_url: str

    def steps(self) -> Iterator[Step]:
        products, users, orders = self._at("products"), self._at("users"), self._at("orders")
        yield Step("Set an API key. `tradepost serve` prints one on a new database.", "export KEY=tp_…")
        yield Step("List the products.", _curl(f"{products}?limit=3"))
        yield Step(
            "Add a product. Sent again, the command gets the first response again.", self._post("products")
        )
        yield Step("Add a user.", self._post("users"))
        lookups = [
            _lookup("PRODUCT", f"{products}?{self._unique('products')}"),
            _lookup("BUYER", f"{users}?{self._unique('users')}"),
        ]
        yield Step("Place an order.", "\n".join([*lookups, self._order()]))
        newest = _lookup("ORDER", f"{orders}?{self._member_holding('user')}=$BUYER&sort=-id&limit=1")
        yield Step("Fulfil it.", f"{newest}\n{self._change(f'{orders}/$ORDER')}")
        last = _curl(f"{self._at('events')}?sort=-id&limit=1")
        yield Step(
            "Read the order with its ETag, and the newest event.", f"{_curl(f'{orders}/$ORDER')} -i\n{last}"
        )

    def _at(self, collection: str) -> str:
        return f"{self.base_url}/{self.version}/{collection}"

    def _example(self, path: str, method: str) -> Json:
        content = self.document["paths"][f"/{self.version}/{path}"][method]["requestBody"]["content"]
        example: Json = content["application/json"]["example"]
        return example

    def _unique(self, collection: str) -> str:
        """A filter that finds the example only: by a member of it that is unique."""
        parameters = self.document["paths"][f"/{self.version}/{collection}"]["get"]["parameters"]
        filters = {each.get("name") for each in parameters}
        members = self._example(collection, "post").items()
        return next(f"{k}={v}" for k, v in members if k in filters and isinstance(v, str) and " " not in v)

    def _member_holding(self, kind: str) -> str:
        """The member of an order that refers to a record of a kind."""
        return next(k for k, v in self._example("orders", "post").items() if v == sample_id(kind))

    def _post(self, collection: str) -> str:
        body = json.dumps(self._example(collection, "post"), ensure_ascii=False, indent=2)
        return f"{self._post_to(collection)} \\\n  -d {shlex.quote(body)}"

    def _order(self) -> str:
        """The example of an order, with shell variables for the ids of its user and product."""
        example = self._example("orders", "post")
        body = json.dumps({k: v for k, v in example.items() if v != sample_id("address")})
        body = body.replace(sample_id("user"), "$BUYER").replace(sample_id("product"), "$PRODUCT")
        quoted = body.replace('"', '\\"')
        return f'{self._post_to("orders")} \\\n  -d "{quoted}"'

    def _post_to(self, collection: str) -> str:
        key = f'-H "Idempotency-Key: {self.version}-first-{collection}"'
        return f"{_curl(self._at(collection))} \\\n  {_TYPE} \\\n  {key}"

    def _change(self, address: str) -> str:
        body = json.dumps(self._example("orders/{id}", "patch"))
        return f"{_curl(address)} \\\n  -X PATCH {_TYPE} -d {shlex.quote(body)}"


def _curl(address: str) -> str:
    return f"curl -sw '\\n' \"{address}\" {_KEY}"


def _lookup(variable: str, address: str) -> str:
    return f"{variable}=$({_curl(address)} \\\n  | {_FIRST_ID})"
