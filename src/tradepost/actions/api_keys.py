"""API keys: created and revoked. No key can create one that may do more than itself."""

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from tradepost.access.api_keys import new_key
from tradepost.access.caller import Caller
from tradepost.actions.change import Change, Rows
from tradepost.actions.standard import StandardActions
from tradepost.clock import parse_instant
from tradepost.domain.api_key import ApiKey
from tradepost.domain.input import Values
from tradepost.domain.scope import granted
from tradepost.problems import Forbidden, MemberError
from tradepost.storage.statements import api_keys


class ApiKeys(StandardActions[ApiKey]):
    """The actions of API keys."""

    reveals: ClassVar[Mapping[str, str]] = {"key": "The key itself, shown this once and never again."}

    def __init__(self) -> None:
        super().__init__(ApiKey)

    async def judge(self, change: Change, values: Values, current: ApiKey | None) -> list[MemberError]:
        return [*await super().judge(change, values, current), *_expiry_errors(values, change.now_ms)]

    async def create(self, change: Change, values: Values) -> Rows:
        """Creates a key, which is shown only in this response.

        Raises `Invalid`, and `Forbidden` for a key that may do more than the caller's.
        """
        for scope in sorted(granted(values["scopes"]) - change.caller.scopes):
            change.caller.require(scope)
        await self.check(change, values, None)
        _check_outlives(change.caller, values["expires_at"])
        made = new_key()
        key = ApiKey(
            id=change.new_id(), prefix=made.prefix, created_at=change.now_at, **self.statements.stored(values)
        )
        change.revealed["key"] = made.key
        return [await change.add(key, hash=made.hash)]

    async def delete(self, change: Change, current: ApiKey) -> None:
        """Revokes a key at once. It can still be read, and revoking it again changes nothing."""
        await change.tx.run(api_keys.REVOKE, key_id=current.id, now=change.now_at)


def _check_outlives(caller: Caller, expires_at: str | None) -> None:
    if caller.expires_at is None:
        return
    if expires_at is None or parse_instant(expires_at) > parse_instant(caller.expires_at):
        message = f"A key that expires at {caller.expires_at} cannot create one that outlives it"
        raise Forbidden(message)


def _expiry_errors(values: Values, now_ms: int) -> list[MemberError]:
    expires_at = values.get("expires_at")
    with suppress(ValueError):
        if expires_at is not None and parse_instant(expires_at) <= now_ms:
            return [MemberError(("expires_at",), "must be in the future", "out_of_range")]
    return []
