"""`tradepost keys`: creates, lists and revokes API keys, with or without a running service."""

import asyncio
import sys
from typing import Annotated

from cyclopts import App, Parameter

from tradepost import settings
from tradepost.actions.api_keys import ApiKeys
from tradepost.actions.change import Change
from tradepost.cli.store import OPERATOR, opened
from tradepost.domain.api_key import ApiKey
from tradepost.domain.input import Input, names_of
from tradepost.perform import Performer
from tradepost.problems import Invalid, MemberError, NotFound
from tradepost.storage.record_statements import Listing, statements_of
from tradepost.storage.statements import api_keys

keys = App(name="keys", help="Create, list and revoke API keys.")
_OPTIONS = {"user_id": "--user", "expires_at": "--expires"}


@keys.command
def create(
    *,
    name: str = "created on the command line",
    scopes: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    user: str | None = None,
    expires: str | None = None,
) -> None:
    """Create a key and print it, alone, on standard output. It cannot be shown again.

    Parameters
    ----------
    name
        What the key is for.
    scopes
        The scopes of the key, separated by spaces or commas: admin for all, or users:read, orders:write …
    user
        The id of the user the key acts for. Default: the key acts for the whole service.
    expires
        When the key expires, as an RFC 3339 date or instant. Default: never.
    """
    names = [scope for text in scopes or ["admin"] for scope in text.split(",")]
    body: dict[str, object] = {"name": name, "scopes": names, "userId": user, "expiresAt": expires}
    key = asyncio.run(_create(body))
    print("Store this key: it cannot be shown again.", file=sys.stderr)
    print(key)


@keys.command(name="list")
def list_() -> None:
    """List all keys, without their secrets."""
    for key in asyncio.run(_all()):
        state = f"revoked {key.revoked_at}" if key.revoked_at else f"last used {key.last_used_at or 'never'}"
        print(f"{key.id}  tp_{key.prefix}_…  {key.name}  {key.scopes}  {state}")


@keys.command
def revoke(key_id: str) -> None:
    """Revoke a key. All processes refuse it within a second.

    Parameters
    ----------
    key_id
        The id of the key, from `tradepost keys list`.
    """
    asyncio.run(_revoke(key_id))
    print("Revoked.", file=sys.stderr)


async def _create(body: dict[str, object]) -> str:
    async with opened(settings.load()) as performer:
        return await make(performer, body)


async def make(performer: Performer, body: dict[str, object]) -> str:
    """Creates a key from the body of a POST and returns it; raises `Invalid` with the options at fault."""

    async def action(change: Change) -> str:
        await ApiKeys().create(change, Input(ApiKey, names_of(ApiKey)).check(body))
        return change.revealed["key"]

    try:
        return (await performer.perform(OPERATOR, None, action, source="")).result
    except Invalid as error:
        raise Invalid("; ".join(map(_line, error.errors))) from None


def _line(error: MemberError) -> str:
    name = str(error.path[0])
    return f"{_OPTIONS.get(name, f'--{name}')} {error.message}"


async def _all() -> list[ApiKey]:
    async with opened(settings.load()) as performer:
        statements = statements_of(ApiKey)
        rows = await performer.database.reading().rows(statements.page(Listing()), limit=10_000)
        return [key for row in rows if isinstance(key := statements.load(row), ApiKey)]


async def _revoke(key_id: str) -> None:
    async with opened(settings.load()) as performer:

        async def action(change: Change) -> None:
            if not await change.tx.run(api_keys.REVOKE, key_id=key_id, now=change.now_at):
                message = f"There is no active key {key_id}"
                raise NotFound(message)

        await performer.perform(OPERATOR, None, action, source="")
