"""`tradepost keys`: makes, lists and revokes API keys, beside the service and without one."""

import asyncio
import sys
from typing import Annotated

from cyclopts import App, Parameter

from tradepost import settings
from tradepost.access.idempotency import Answer
from tradepost.actions.api_keys import ApiKeys
from tradepost.actions.change import Change
from tradepost.cli.store import OPERATOR, opened
from tradepost.domain.api_key import ApiKey
from tradepost.domain.input import Input, names_of
from tradepost.perform import Performer
from tradepost.problems import Invalid, NotFound
from tradepost.storage.plain import Listing, plain
from tradepost.storage.statements import api_keys

keys = App(name="keys", help="Make, list and revoke API keys.")


@keys.command
def create(
    *,
    name: str = "made on the command line",
    scopes: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    user: str | None = None,
    expires: str | None = None,
) -> None:
    """Make a key and print it, alone, on standard output. It is shown this once.

    Parameters
    ----------
    name
        What the key is for.
    scopes
        What it may do: admin, or any of users:read orders:write …, separated by spaces or commas.
    user
        The id of the user it acts for; without, it acts for the whole service.
    expires
        When it stops working, RFC 3339.
    """
    asked = [scope for text in scopes or ["admin"] for scope in text.split(",")]
    given: dict[str, object] = {"name": name, "scopes": asked, "userId": user, "expiresAt": expires}
    key = asyncio.run(_create(given))
    print("Keep this key: it is not shown again.", file=sys.stderr)
    print(key)


@keys.command(name="list")
def list_() -> None:
    """List all keys, without their secrets."""
    for key in asyncio.run(_all()):
        state = f"revoked {key.revoked_at}" if key.revoked_at else f"last used {key.last_used_at or 'never'}"
        print(f"{key.id}  tp_{key.prefix}_…  {key.name}  {key.scopes}  {state}")


@keys.command
def revoke(key_id: str) -> None:
    """Revoke a key, at once on every process.

    Parameters
    ----------
    key_id
        The id that `tradepost keys list` shows.
    """
    asyncio.run(_revoke(key_id))
    print("Revoked.", file=sys.stderr)


async def _create(given: dict[str, object]) -> str:
    async with opened(settings.load()) as performer:
        return await make(performer, given)


async def make(performer: Performer, given: dict[str, object]) -> str:
    """Makes a key as the API would; raises `Invalid` in words for the command line."""
    try:
        values = Input(ApiKey, names_of(ApiKey)).check(given)
    except Invalid as error:
        wrong = "; ".join(f"{each.path[0]} {each.message}" for each in error.errors)
        raise Invalid(wrong) from None

    async def action(change: Change) -> Answer:
        await ApiKeys().create(change, values)
        return Answer(201, [], change.revealed["key"].encode())

    done = await performer.perform(OPERATOR, action, record=ApiKey, source="")
    return done.answer.body.decode()


async def _all() -> list[ApiKey]:
    async with opened(settings.load()) as performer:
        statements = plain(ApiKey)
        rows = await performer.database.reading().rows(statements.page(Listing()), limit=10_000)
        return [key for row in rows if isinstance(key := statements.load(row), ApiKey)]


async def _revoke(key_id: str) -> None:
    async with opened(settings.load()) as performer:

        async def action(change: Change) -> Answer:
            if not await change.tx.run(api_keys.REVOKE, key_id=key_id, now=change.now):
                message = f"There is no key {key_id} that could be revoked"
                raise NotFound(message)
            return Answer(204, [], b"")

        await performer.perform(OPERATOR, action, record=ApiKey, source="")
