"""What can resolve a field of the schema: an attribute of its source, or a resolver of a whole level."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Args = Mapping[str, Any]
Resolve = Callable[[Sequence[Any], Args, Any], list[Any] | Awaitable[list[Any]]]


class Partial(list[Any]):
    """A column of values of which some are exceptions: the failures of their sources."""


@dataclass(frozen=True)
class Attribute:
    """Reads the source: `expression` over `p`, with the names in `known`. It contains no text of a caller.

    An object whose expression is just `p` is the source itself, seen as another type. A leaf that is
    `trusted` has a value of its field's type for every source: rows were checked when they were written.
    """

    expression: str
    known: Mapping[str, Any] = field(default_factory=dict)
    trusted: bool = False

    @cached_property
    def read(self) -> Callable[[Any], Any]:
        """Returns the value for one source; raises what the expression raises."""
        read: Callable[[Any], Any] = eval(f"lambda p: {self.expression}", dict(self.known))  # noqa: S307
        return read

    @cached_property
    def read_all(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Returns the values for all sources of a level; raises what the expression raises for one."""
        read: Callable[[Sequence[Any]], list[Any]] = eval(  # noqa: S307
            f"lambda sources: [{self.expression} for p in sources]", dict(self.known)
        )
        return read

    @cached_property
    def positions(self) -> frozenset[int]:
        """The positions of a row that the expression reads, if its source is a row."""
        return frozenset(int(at) for at in re.findall(r"\bp\[(\d+)\]", self.expression))

    @property
    def is_source(self) -> bool:
        return self.expression == "p"


@dataclass(frozen=True)
class LevelResolver:
    """Calls `resolve(sources, args, context)` once for all sources of a level, however many there are.

    It returns a list with one value for each source, or a coroutine of one where it awaits loads; a `Partial`
    where only some sources failed. An exception that it raises is the failure of every source. Resolvers of
    data judge permission themselves (`Context.admit`).
    """

    resolve: Resolve
    positions: frozenset[int] = frozenset()  # of its sources that it reads, if they are rows


FieldResolver = Attribute | LevelResolver
FieldResolvers = Mapping[tuple[str, str], FieldResolver]  # by type and field
