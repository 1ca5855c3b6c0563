"""A caller: whoever showed a valid API key, and what that key may do."""

import msgspec

from tradepost.problems import Forbidden


class Caller(msgspec.Struct, frozen=True):
    """A checked caller. `user_id` is set if the key acts for one user alone; `token` is never kept."""

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
