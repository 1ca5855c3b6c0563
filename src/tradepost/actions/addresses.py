"""Addresses: plain; a change of one is an update of the user it belongs to."""

from tradepost.actions.change import Change
from tradepost.actions.plain import Plain
from tradepost.domain.address import Address
from tradepost.domain.user import User
from tradepost.storage.database import Row


class Addresses(Plain):
    """The actions of addresses."""

    def __init__(self) -> None:
        super().__init__(Address)
        self._user_id = self.statements.names.index("user_id")

    def announce(self, change: Change, verb: str, before: Row, after: Row) -> None:
        del verb, before
        change.announce("user.updated", User.plural, after[self._user_id])
