"""A caller: the sender of a valid API key, with the permissions of that key."""

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
