"""Which user each row belongs to, by id or by email."""

from collections.abc import Sequence
from typing import NamedTuple

from tradepost.actions.change import Change
from tradepost.domain.input import Values
from tradepost.domain.user import User
from tradepost.problems import MemberError
from tradepost.storage.statements import identities
from tradepost.transfer import lookup


class Owners(NamedTuple):
    """The users that rows name and that exist. By id, deleted users count as well."""

    by_email: dict[str, str]
    ids: set[str]

    def of(self, values: Values, errors: list[MemberError]) -> str:
        """The id of a row's user; adds to `errors` if there is none."""
        user_id = values["user_id"]
        known = user_id if user_id in self.ids else None
        if user_id is None:
            known = self.by_email.get(values["user_email"].casefold())
        if known is None:
            member = "email" if user_id is None else "id"
            message = f"must be the {member} of an existing user"
            errors.append(MemberError((f"user_{member}",), message, "unknown"))
        return known or ""


async def owners(change: Change, rows: Sequence[Values]) -> Owners:
    """Looks up the users that rows name."""
    emails = [row["user_email"].casefold() for row in rows if row["user_email"]]
    return Owners(
        dict(await lookup.rows(change, identities.USERS_BY_EMAIL, "names", emails)),
        await lookup.ids(change, User, [row["user_id"] for row in rows]),
    )
