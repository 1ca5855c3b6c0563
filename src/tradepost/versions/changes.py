"""The versions of the API and what each changes against the records as they are.

A version is a list of changes and nothing else: `/v2` with `title` for a product's `name` is one line,
`Version(2, "2027-05-01", (Rename("product", "name", "title"),))`.
"""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Rename:
    """The member `name` of a record is called `outside` in this version."""

    kind: str
    name: str
    outside: str


@dataclass(frozen=True)
class Version:
    """A major version: its number, the day it was introduced, and how it names things."""

    number: int
    introduced: str
    changes: tuple[Rename, ...] = ()

    @cached_property
    def name(self) -> str:
        return f"v{self.number}"

    @cached_property
    def only(self) -> frozenset[int]:
        """Its number alone, as a set of those served."""
        return frozenset([self.number])

    def names(self, kind: str, names: dict[str, str]) -> dict[str, str]:
        """The names of a record's members in this version."""
        return names | {change.name: change.outside for change in self.changes if change.kind == kind}


VERSIONS: tuple[Version, ...] = (Version(1, "2026-01-01"),)
