"""Users: standard actions, with an event of its own for a deactivation."""

import msgspec

from tradepost.actions.change import Change
from tradepost.actions.standard import StandardActions
from tradepost.domain.user import User


class Users(StandardActions[User]):
    """The actions of users."""

    def __init__(self) -> None:
        super().__init__(User, emits=True)

    @property
    def events(self) -> tuple[str, ...]:
        return ("user.created", "user.updated", "user.deactivated", "user.deleted")

    def announce(self, change: Change, verb: str, before: User, after: User) -> None:
        deactivated = (before.status, after.status) == ("ACTIVE", "DEACTIVATED")
        if deactivated:
            super().announce(change, "deactivated", before, after)
            same = {"status": before.status, "updated_at": before.updated_at, "version": before.version}
            if msgspec.structs.replace(after, **same) == before:
                return  # nothing but the status changed
        super().announce(change, verb, before, after)
