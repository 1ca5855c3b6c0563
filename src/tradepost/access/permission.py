"""A permission: the requirements on a caller for one method of one resource."""

from typing import NamedTuple

from tradepost.access.caller import Caller
from tradepost.problems import Forbidden


class Permission(NamedTuple):
    """The scope that the key must have, and whether keys that act for a user are permitted."""

    scope: str
    user_keys: bool

    def check(self, caller: Caller) -> None:
        """Raises `Forbidden` unless the caller has the permission."""
        caller.require(self.scope)
        if caller.user_id is not None and not self.user_keys:
            message = "A key that acts for a user may not do this"
            raise Forbidden(message)
