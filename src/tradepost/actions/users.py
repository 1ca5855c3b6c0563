"""Users: plain, but for telling the world when one is deactivated."""

from tradepost.actions.change import Change
from tradepost.actions.plain import Plain
from tradepost.domain.user import User
from tradepost.storage.database import Row


class Users(Plain):
    """The actions of users."""

    def __init__(self) -> None:
        super().__init__(User, emits=True)
        self._status = self.statements.names.index("status")
        self._unsaid = {
            self._status,
            self.statements.names.index("updated_at"),
            self.statements.names.index("version"),
        }

    @property
    def events(self) -> tuple[str, ...]:
        return ("user.created", "user.updated", "user.deactivated", "user.deleted")

    def announce(self, change: Change, verb: str, before: Row, after: Row) -> None:
        left = before[self._status] == "ACTIVE" and after[self._status] == "DEACTIVATED"
        if left:
            super().announce(change, "deactivated", before, after)
        if not left or any(
            old != new
            for i, (old, new) in enumerate(zip(before, after, strict=True))
            if i not in self._unsaid
        ):
            super().announce(change, verb, before, after)
