"""First steps: a walk from an empty shop to a fulfilled order, in lines to paste into a shell.

Every line can be pasted twice: what makes something has an idempotency key, and what needs an id looks it up.
The names of members are those of the version's own examples.
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
    """A sentence and the lines that go with it."""

    says: str
    lines: str


def first_steps(document: Json, base_url: str) -> list[Step]:
    """The walk through a version's API; empty if it lacks what the walk is about."""
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
        yield Step("Take a key: `tradepost serve` prints the first one on a new database.", "export KEY=tp_…")
        yield Step("See what there is.", _curl(f"{products}?limit=3"))
        yield Step("Add a product. Sent again, this gets the first answer again.", self._post("products"))
        yield Step("Add a user.", self._post("users"))
        look_ups = [
            _look_up("PRODUCT", f"{products}?{self._unique('products')}"),
            _look_up("BUYER", f"{users}?{self._unique('users')}"),
        ]
        yield Step("Place an order.", "\n".join([*look_ups, self._order()]))
        newest = _look_up("ORDER", f"{orders}?{self._member_holding('user')}=$BUYER&sort=-id&limit=1")
        yield Step("Fulfil it.", f"{newest}\n{self._change(f'{orders}/$ORDER')}")
        last = _curl(f"{self._at('events')}?sort=-id&limit=1")
        yield Step(
            "Read it, with its ETag, and what was announced.", f"{_curl(f'{orders}/$ORDER')} -i\n{last}"
        )

    def _at(self, collection: str) -> str:
        return f"{self.base_url}/{self.version}/{collection}"

    def _example(self, path: str, method: str) -> Json:
        content = self.document["paths"][f"/{self.version}/{path}"][method]["requestBody"]["content"]
        example: Json = content["application/json"]["example"]
        return example

    def _unique(self, collection: str) -> str:
        """What the example can be found by: a filter that is required, and no more than one has."""
        asked = self.document["paths"][f"/{self.version}/{collection}"]["get"]["parameters"]
        filters = {each.get("name") for each in asked}
        found = self._example(collection, "post").items()
        return next(f"{k}={v}" for k, v in found if k in filters and isinstance(v, str) and " " not in v)

    def _member_holding(self, kind: str) -> str:
        """The member of an order that names a user."""
        return next(k for k, v in self._example("orders", "post").items() if v == sample_id(kind))

    def _post(self, collection: str) -> str:
        body = json.dumps(self._example(collection, "post"), ensure_ascii=False, indent=2)
        return f"{self._making(collection)} \\\n  -d {shlex.quote(body)}"

    def _order(self) -> str:
        """The example of an order, with the two ids that the shell has looked up."""
        example = self._example("orders", "post")
        body = json.dumps({k: v for k, v in example.items() if v != sample_id("address")})
        body = body.replace(sample_id("user"), "$BUYER").replace(sample_id("product"), "$PRODUCT")
        quoted = body.replace('"', '\\"')
        return f'{self._making("orders")} \\\n  -d "{quoted}"'

    def _making(self, collection: str) -> str:
        key = f'-H "Idempotency-Key: {self.version}-first-{collection}"'
        return f"{_curl(self._at(collection))} \\\n  {_TYPE} \\\n  {key}"

    def _change(self, address: str) -> str:
        body = json.dumps(self._example("orders/{id}", "patch"))
        return f"{_curl(address)} \\\n  -X PATCH {_TYPE} -d {shlex.quote(body)}"


def _curl(address: str) -> str:
    return f"curl -sw '\\n' \"{address}\" {_KEY}"


def _look_up(variable: str, address: str) -> str:
    return f"{variable}=$({_curl(address)} \\\n  | {_FIRST_ID})"
