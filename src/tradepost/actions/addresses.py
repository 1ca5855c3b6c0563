"""Addresses: standard actions; a change of one is an update of its user."""

from tradepost.actions.change import Change
from tradepost.actions.standard import StandardActions
from tradepost.domain.address import Address
from tradepost.domain.user import User


class Addresses(StandardActions[Address]):
    """The actions of addresses."""

    def __init__(self) -> None:
        super().__init__(Address)

    def announce(self, change: Change, verb: str, before: Address, after: Address) -> None:
        del verb, before
        change.announce("user.updated", User.plural, after.user_id)
