"""API keys: made, and revoked. A key can make no key that may do more than itself."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from tradepost.access.api_keys import new_key
from tradepost.actions.change import Change, Rows
from tradepost.actions.plain import Plain
from tradepost.clock import instant, parse_instant
from tradepost.domain.api_key import ApiKey
from tradepost.domain.input import Values
from tradepost.domain.scope import granted
from tradepost.problems import invalid
from tradepost.storage.database import Row
from tradepost.storage.statements import api_keys


class ApiKeys(Plain):
    """The actions of API keys."""

    reveals: ClassVar[Mapping[str, str]] = {"key": "The key itself, shown this once and never again."}

    def __init__(self) -> None:
        super().__init__(ApiKey)

    async def create(self, change: Change, values: Values) -> Rows:
        """Makes a key; it is revealed once, in the answer to this."""
        for scope in sorted(granted(values["scopes"]) - change.caller.scopes):
            change.caller.require(scope)
        await self._check_parents(change, values)
        made = new_key()
        row = await change.add(
            ApiKey,
            {
                "id": change.new_id(),
                "name": values["name"],
                "scopes": msgspec.json.encode(values["scopes"]).decode(),
                "user_id": values["user_id"],
                "expires_at": _future(values["expires_at"], change.now_ms),
                "prefix": made.prefix,
                "created_at": change.now,
                "hash": made.hash,
            },
        )
        change.revealed["key"] = made.key
        return [row]

    async def delete(self, change: Change, current: Row) -> None:
        """Revokes a key at once; it stays to be read, and revoking it again changes nothing."""
        await change.tx.run(api_keys.REVOKE, key_id=current[0], now=change.now)


def _future(expires_at: str | None, now: int) -> str | None:
    if expires_at is None:
        return None
    try:
        at = parse_instant(expires_at)
    except ValueError as error:
        raise invalid(("expires_at",), str(error), "invalid") from None
    if at <= now:
        raise invalid(("expires_at",), "is in the past", "out_of_range")
    return instant(at)
