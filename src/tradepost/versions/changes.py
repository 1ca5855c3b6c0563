"""The versions of the API, each as a list of changes to the names in the records.

A version `/v2` in which a product has `title` instead of `name` is one line:
`Version(2, "2027-05-01", (Rename("product", "name", "title"),))`.
"""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Rename:
    """In this version, the member `name` of the record `kind` has the external name `outside`."""

    kind: str
    name: str
    outside: str


@dataclass(frozen=True)
class Version:
    """A major version: its number, its date of introduction (`2026-01-01`), and its changes."""

    number: int
    introduced: str
    changes: tuple[Rename, ...] = ()

    @cached_property
    def name(self) -> str:
        return f"v{self.number}"

    @cached_property
    def only(self) -> frozenset[int]:
        """The set of its number only, for negotiation at an address that serves one version."""
        return frozenset([self.number])

    def names(self, kind: str, names: dict[str, str]) -> dict[str, str]:
        """The external names of a record's members by internal ones; `names` are those without changes."""
        return names | {change.name: change.outside for change in self.changes if change.kind == kind}


VERSIONS: tuple[Version, ...] = (Version(1, "2026-01-01"),)
