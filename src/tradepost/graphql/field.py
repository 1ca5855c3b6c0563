"""What can stand behind a field of the schema: an attribute of its source, or a resolver of the level."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Args = Mapping[str, Any]
Resolve = Callable[[Sequence[Any], Args, Any], list[Any] | Awaitable[list[Any]]]


class Partial(list[Any]):
    """A column of values in which some are exceptions: what went wrong at that place."""


@dataclass(frozen=True)
class Attribute:
    """Read off the source: `expression` over `p`, with the names in `known`. No caller's text is in it.

    An object that is just `p` is the source itself, seen as another type. A leaf that is `sound` is of its
    field's type whatever the source: what the tables hold was checked when it was written.
    """

    expression: str
    known: Mapping[str, Any] = field(default_factory=dict)
    sound: bool = False

    @cached_property
    def of(self) -> Callable[[Any], Any]:
        """The attribute of one source."""
        read: Callable[[Any], Any] = eval(f"lambda p: {self.expression}", dict(self.known))  # noqa: S307
        return read

    @cached_property
    def of_all(self) -> Callable[[Sequence[Any]], list[Any]]:
        """The attribute of each source of a level; raises if one of them does."""
        read: Callable[[Sequence[Any]], list[Any]] = eval(  # noqa: S307
            f"lambda sources: [{self.expression} for p in sources]", dict(self.known)
        )
        return read

    @cached_property
    def positions(self) -> frozenset[int]:
        """Where in its source it looks, if that is a row."""
        return frozenset(int(at) for at in re.findall(r"\bp\[(\d+)\]", self.expression))

    @property
    def is_source(self) -> bool:
        return self.expression == "p"


@dataclass(frozen=True)
class Resolver:
    """Asked once for all sources of a level, whatever their number: `resolve(sources, args, context)`.

    It returns a list of one value for each source, as a coroutine if it awaits its loads; `Partial` if some
    of them failed. What it raises is the failure of every one.
    """

    resolve: Resolve
    positions: frozenset[int] = frozenset()  # where in its sources it looks, if they are rows


Bindings = Mapping[tuple[str, str], Attribute | Resolver]  # by type and field
