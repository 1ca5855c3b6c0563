"""What a declaration of a resource may say. The catalogue is a list of these; everything else reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from tradepost.actions.change import Change, Means, Rows
from tradepost.actions.plain import Refusals
from tradepost.domain.input import Values
from tradepost.domain.record import BelongsTo, Record, member
from tradepost.problems import MemberError
from tradepost.storage.database import Row

ALL = ("GET", "POST", "PUT", "PATCH", "DELETE")
READ = ("GET",)
SAFE = frozenset({"GET", "HEAD"})


class Actions(Protocol):
    """What can be done with a resource's record."""

    @property
    def events(self) -> tuple[str, ...]:
        """The names of the events its changes announce."""

    @property
    def refuses(self) -> Refusals:
        """The problems that its rules add to those that any resource can meet."""

    @property
    def reveals(self) -> Mapping[str, str]:
        """Secrets that stand beside the record in the answer that made it, and what each is."""

    async def prepare(self, means: Means, body: bytes, names: Mapping[str, str]) -> None:
        """Looks at what may take long, before there is a transaction; raises nothing.

        `body` is not judged yet; `names` are what it calls the members.
        """

    async def judge(self, change: Change, values: Values, current: Row | None) -> list[MemberError]:
        """What of `values` breaks a rule, as far as they could be read; `current` is what they replace."""

    async def create(self, change: Change, values: Values) -> Rows:
        """Adds one."""

    async def replace(self, change: Change, current: Row, values: Values) -> Rows:
        """Makes one say `values`."""

    async def delete(self, change: Change, current: Row) -> None:
        """Removes one."""


@dataclass(frozen=True)
class Resource:
    """A record with its address, its methods and who may use them.

    `scope` gives the pair `<scope>:read`, `<scope>:write`, unless one scope is for both. `under` is the
    foreign key of the parent below whose address it (also) lives, and `called` what it is called there if
    not as its record is. A key that acts for a user meets what is its `own`, may `read` all, or has no
    business there (`none`). A POST of a body that says what only the record `instead` takes makes one of
    that.
    """

    record: type[Record]
    actions: Actions | None
    scope: str
    user_keys: Literal["own", "read", "none"] = "none"
    methods: tuple[str, ...] = ALL
    under: str | None = None
    top: bool = True
    revisable: bool = True  # its ETag is its version; else a hash of what is shown
    called: tuple[str, str] | None = None  # one, and several: `secret`, `secrets`
    instead: type[Record] | None = None

    @cached_property
    def one(self) -> str:
        """What one of them is called: `line_item`."""
        return self.called[0] if self.called else self.record.kind

    @cached_property
    def many(self) -> str:
        """What several of them are called: `line_items`."""
        return self.called[1] if self.called else self.record.plural

    @cached_property
    def segment(self) -> str:
        """Its place in a path: `line-items`."""
        return self.many.replace("_", "-")

    @cached_property
    def read_scope(self) -> str:
        return self.scope if ":" in self.scope else f"{self.scope}:read"

    @cached_property
    def write_scope(self) -> str:
        return self.scope if ":" in self.scope else f"{self.scope}:write"

    def is_open_to_user_keys(self, method: str) -> bool:
        """Whether a key that acts for a user may: it reads what all may read, and changes its own."""
        if self.user_keys == "own":
            return not (self.record.kind == "user" and method == "POST")  # it makes no users
        return self.user_keys == "read" and method in SAFE

    @cached_property
    def parent(self) -> BelongsTo | None:
        """The parent below whose address it lives."""
        return member(self.record, self.under).belongs_to if self.under else None

    @cached_property
    def collection_methods(self) -> tuple[str, ...]:
        return _allowed(self.methods, ("GET", "POST"))

    @cached_property
    def item_methods(self) -> tuple[str, ...]:
        return _allowed(self.methods, ("GET", "PUT", "PATCH", "DELETE"))


def _allowed(methods: tuple[str, ...], possible: tuple[str, ...]) -> tuple[str, ...]:
    """The methods of an address: HEAD wherever GET, and OPTIONS always."""
    taken = [method for method in possible if method in methods]
    return (*taken, *(["HEAD"] if "GET" in taken else []), "OPTIONS")
