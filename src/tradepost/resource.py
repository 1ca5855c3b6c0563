"""Declarations of resources. The catalogue is a list of them, and the surfaces are derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from tradepost.access.caller import Permission
from tradepost.actions.change import Change, Rows, Services
from tradepost.actions.standard import Refusals
from tradepost.domain.input import Values
from tradepost.domain.record import BelongsTo, Record, member
from tradepost.problems import MemberError

ALL = ("GET", "POST", "PUT", "PATCH", "DELETE")
READ = ("GET",)
SAFE = frozenset({"GET", "HEAD"})


class Actions(Protocol):
    """The actions of a resource's record, each within a transaction.

    The waist has checked the permission. An action raises `Invalid` with every broken rule, and the problems
    that it lists in `refuses`; `Duplicate` comes from the database.
    """

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events that the actions announce."""

    @property
    def refuses(self) -> Refusals:
        """The problems that the rules add to those of any resource."""

    @property
    def reveals(self) -> Mapping[str, str]:
        """The descriptions of the secrets in the response that created an item, by their names."""

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""

    async def prepare(self, services: Services, body: bytes, names: Mapping[str, str]) -> None:
        """Does slow work, such as look-ups, before the transaction begins; raises nothing.

        `body` has not been checked; `names` are the external names of its members by internal ones.
        """

    async def judge(self, change: Change, values: Values, current: Any | None) -> list[MemberError]:
        """The errors of the readable `values` of a body; `current` is the item that they would replace."""

    async def create(self, change: Change, values: Values) -> Rows:
        """Creates an item. Returns its row, or a row for each embedded child."""

    async def replace(self, change: Change, current: Any, values: Values) -> Rows:
        """Sets the members of a locked item. Returns its row, or a row for each embedded child."""

    async def delete(self, change: Change, current: Any) -> None:
        """Removes a locked item."""


@dataclass(frozen=True)
class Resource:
    """A record with its address, its methods and their permissions.

    `scope` stands for `<scope>:read` and `<scope>:write`, unless it has a colon and is used for both. `under`
    is the foreign key of the parent below whose address the items are found; without `top`, only there.
    `called` is the name of the items if it is not the record's. A key that acts for a user has access to the
    user's `own` items, may `read` all items, or has no access (`none`). A POST with members that only the
    record `alternative` takes creates one of those.
    """

    record: type[Record]
    actions: Actions | None
    scope: str
    user_keys: Literal["own", "read", "none"] = "none"
    methods: tuple[str, ...] = ALL
    under: str | None = None
    top: bool = True
    revisable: bool = True  # its ETag is its version; otherwise a hash of the body
    called: tuple[str, str] | None = None  # one, and several: `secret`, `secrets`
    alternative: type[Record] | None = None

    @cached_property
    def one(self) -> str:
        """The name of one item: `line_item`."""
        return self.called[0] if self.called else self.record.kind

    @cached_property
    def many(self) -> str:
        """The name of several items: `line_items`."""
        return self.called[1] if self.called else self.record.plural

    @cached_property
    def segment(self) -> str:
        """The segment of paths that names its items: `line-items`."""
        return self.many.replace("_", "-")

    @cached_property
    def read_scope(self) -> str:
        return self.scope if ":" in self.scope else f"{self.scope}:read"

    @cached_property
    def write_scope(self) -> str:
        return self.scope if ":" in self.scope else f"{self.scope}:write"

    @cached_property
    def permissions(self) -> Mapping[str, Permission]:
        """The permission that each method needs."""
        return {method: self._permission(method) for method in ("HEAD", *ALL)}

    def _permission(self, method: str) -> Permission:
        """A key that acts for a user may read public items, and change the user's own."""
        scope = self.read_scope if method in SAFE else self.write_scope
        if self.user_keys == "own":
            return Permission(scope, not (self.record.is_owner and method == "POST"), own=True)
        return Permission(scope, self.user_keys == "read" and method in SAFE)

    @cached_property
    def parent(self) -> BelongsTo | None:
        """The parent below whose address the items are found, if any."""
        return member(self.record, self.under).belongs_to if self.under else None

    @cached_property
    def collection_methods(self) -> tuple[str, ...]:
        return _allowed(self.methods, ("GET", "POST"))

    @cached_property
    def item_methods(self) -> tuple[str, ...]:
        return _allowed(self.methods, ("GET", "PUT", "PATCH", "DELETE"))


def _allowed(methods: tuple[str, ...], possible: tuple[str, ...]) -> tuple[str, ...]:
    """The methods of an address, with HEAD if there is GET, and always with OPTIONS."""
    taken = [method for method in possible if method in methods]
    return (*taken, *(["HEAD"] if "GET" in taken else []), "OPTIONS")
