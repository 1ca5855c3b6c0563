"""A caller: the sender of a valid API key, with the permissions of that key."""

from typing import NamedTuple

import msgspec

from tradepost.problems import Forbidden


class Caller(msgspec.Struct, frozen=True):
    """An authenticated caller. `user_id` is set if the key acts for one user; `token` is never stored."""

    key_id: str
    scopes: frozenset[str]
    user_id: str | None = None
    token: bytes = b""
    expires_at: str | None = None

    def require(self, scope: str) -> None:
        """Raises `Forbidden` unless the caller has the scope."""
        if scope not in self.scopes:
            message = f"The API key lacks the scope {scope}"
            raise Forbidden(message, scope=scope)


class Permission(NamedTuple):
    """What a caller needs for a method of a resource: a scope; and what a key that acts for a user may do.

    Such a key is let in with `user_keys`. With `own` it sees only the items of its user.
    """

    scope: str
    user_keys: bool
    own: bool = False

    def check(self, caller: Caller) -> None:
        """Raises `Forbidden` unless the caller has the permission."""
        caller.require(self.scope)
        if caller.user_id is not None and not self.user_keys:
            message = "A key that acts for a user may not do this"
            raise Forbidden(message)

    def owner(self, caller: Caller) -> str | None:
        """The user whose items alone the caller sees; None if it sees all."""
        return caller.user_id if self.own else None
