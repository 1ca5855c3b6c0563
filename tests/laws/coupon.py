"""Orders with a coupon: a copy of the program with one more member, and every way that the member lives in.

Orders of the copy also have a carrier, and their lines a gift, which only PATCH takes.

Run as a command on the path of such a copy, with a folder and the URLs of three databases, it prints what each
way shows of the coupon, as JSON.
"""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests import shop
from tests.graphql.asking import got
from tests.service import Service
from tradepost import assembly
from tradepost.cli.app import app
from tradepost.settings import load

_ROOT = Path(__file__).parents[2]
_DECLARATIONS = {
    "order": """
    coupon: Annotated[
        str | None, Meta(description="What was redeemed.", max_length=20), FILTERABLE
    ] = None
    carrier: Annotated[str | None, Meta(description="Who carries it."), PATCHED] = None
""",
    "line_item": """
    gift: Annotated[str | None, Meta(description="For whom."), PATCHED] = None
""",
}
_MIGRATION = """
from alembic import op
from tradepost.storage.migrations.columns import text

revision, down_revision = "9999", "{before}"


def upgrade() -> None:
    op.add_column("orders", text("coupon", nullable=True))
    op.add_column("orders", text("carrier", nullable=True))
    op.add_column("line_items", text("gift", nullable=True))
"""
_CREATE = "mutation($input: CreateOrderInput!) { createOrder(input: $input) { id coupon } }"
_READ = "query($id: ID!) { order(id: $id) { coupon } }"


def copied(folder: Path) -> Path:
    """A copy of the program whose orders have a coupon; returns the folder that its package is in."""
    source = folder / "src"
    package = source / "tradepost"
    shutil.copytree(_ROOT / "src" / "tradepost", package, ignore=shutil.ignore_patterns("__pycache__"))
    versions = package / "storage" / "migrations" / "versions"
    before = max(path.name.partition("_")[0] for path in versions.glob("[0-9]*.py"))
    (versions / "9999_coupons.py").write_text(_MIGRATION.format(before=before))
    for name, declaration in _DECLARATIONS.items():
        file = package / "domain" / f"{name}.py"
        _insert(file, "\n\nclass ", "\nfrom tradepost.domain.record import PATCHED\n")
        _insert(file, "    shipping_address_id: " if name == "order" else "    sku: ", declaration)
    shutil.copytree(_ROOT / "contract", folder / "contract")
    schema = folder / "contract" / "schema.graphql"
    _insert(schema, '  "Snapshot of the shipping address', "  coupon: String\n")
    _insert(schema, '  "One of the user\'s addresses."\n  shippingAddressId', "  coupon: String\n")
    return source


def _insert(file: Path, before: str, line: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, line + before), "utf-8")


def shown_by(service: Service) -> dict[str, Any]:
    """The coupon that each way of a service shows, of two orders."""
    product, user = shop.a_product(service), shop.a_user(service)
    body = shop.order_body(user, (product, 1))
    created = got(service, _CREATE, {"input": body | {"coupon": "CREATED"}})["createOrder"]
    one = service.made("/v1/orders", body | {"coupon": "POSTED"})
    path = f"/v1/orders/{one['id']}"
    body["lineItems"] = one["lineItems"]
    return {
        "POST": one["coupon"],
        "filter": [each["id"] == one["id"] for each in shop.walked(service, "/v1/orders?coupon=POSTED")],
        "filter by another": shop.walked(service, "/v1/orders?coupon=POST"),
        "fields": shop.walked(service, "/v1/orders?fields=coupon&coupon=POSTED")
        == [{"id": one["id"], "coupon": "POSTED"}],
        "PATCH": _written(service, "PATCH", path, {"coupon": "PATCHED"}),
        "PATCH of another member": _written(service, "PATCH", path, {"status": "PENDING"}),
        "PATCH null": _written(service, "PATCH", path, {"coupon": None}),
        "PUT": _written(service, "PUT", path, {**body, "coupon": "PUT, it's"}),
        "PUT too long": {
            each["field"]: each["message"]
            for each in service.call("PUT", path, {**body, "coupon": "x" * 21}).json["errors"]
        },
        "PUT without": _written(service, "PUT", path, body),
        "PATCHED": _patched(service, path, body),
        "PUT again": _written(service, "PUT", path, {**body, "coupon": 'a, "b"'}),
        "events": shop.told(service, f"orders/{one['id']}"),
        "GraphQL, created": created["coupon"],
        "GraphQL, read": got(service, _READ, {"id": one["id"]})["order"]["coupon"],
    }


def _patched(service: Service, path: str, body: Any) -> list[Any]:
    """The carrier of an order and the gift of its line, before and after a PATCH sets them, and after a PUT."""
    line = f"/v1/line-items/{body['lineItems'][0]['id']}"
    ignored = {**body, "carrier": "PUT", "lineItems": [{**body["lineItems"][0], "gift": "PUT"}]}
    shown = []
    for target, method, sent in (
        (path, "PUT", ignored),
        (path, "PATCH", {"carrier": "Royal Mail"}),
        (line, "PATCH", {"gift": "Ada"}),
        (path, "PUT", ignored),
        (path, "PATCH", {"lineItems": body["lineItems"]}),
    ):
        assert service.call(method, target, sent).status == 200
        order = shop.get(service, path)
        shown.append([order["carrier"], order["lineItems"][0]["gift"]])
    return shown


def _written(service: Service, method: str, path: str, body: Any) -> Any:
    """The coupon that a GET shows after a write, which answers the same."""
    reply = service.call(method, path, body)
    shown = shop.get(service, path)
    assert (reply.status, reply.json) == (200, shown), reply
    return shown["coupon"]


def _transferred(url: str, other: str, form: str, folder: Path) -> list[Any]:
    """The coupons and carriers of a database, after an export from it and an import into another."""
    for what in ("users", "products", "orders"):
        file = str(folder / f"{what}.{form}")
        _command(url, "export", what, file)
        _command(other, "import", what, file)
    service = Service(other)
    try:
        return [[each["coupon"], each["carrier"]] for each in shop.walked(service, "/v1/orders")]
    finally:
        service.stop()


def _command(url: str, *words: str) -> None:
    os.environ["TRADEPOST_DATABASE_URL"] = url
    assert not app(list(words), result_action="return_value", exit_on_error=False), words


def _main(folder: Path, *urls: str) -> None:
    for url in urls:
        asyncio.run(assembly.migrate(load({}, database_url=url)))
    service = Service(urls[0])
    try:
        shown = shown_by(service)
    finally:
        service.stop()
    for form, other in zip(("jsonl", "csv"), urls[1:], strict=True):
        shown[form] = _transferred(urls[0], other, form, folder)
    sys.stdout.write(json.dumps(shown))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *sys.argv[2:])
