"""A schema with every kind of field, and a world behind it that is drawn from a seed, faults included.

Each value is drawn from the seed and from where it stands, so whoever asks, in whatever order, finds the same.
"""

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from graphql import GraphQLError, GraphQLScalarType, GraphQLSchema, build_schema

from tradepost.graphql.field import Args, Attribute, FieldResolvers, LevelResolver, Partial
from tradepost.graphql.loads import Loads

# All nullabilities of a value and of a list of them, by what a field's name ends with.
SHAPES = {
    "": "{}",
    "N": "{}!",
    "Of": "[{}]",
    "OfN": "[{}!]",
    "NOf": "[{}]!",
    "NOfN": "[{}!]!",
}
LEAVES = ("ID", "String", "Int", "Float", "Boolean", "Colour", "Moment", "Code")
# What resolvers give that answer at once, and those that wait for their loads; all else are attributes.
AT_ONCE = {
    "now": ("(n: Int = 1, colour: Colour)", "Thing"),
    "said": ("(colours: [Colour!] = [RED])", "String"),
}
WAITING = {
    "found": ("(n: Int! = 2, wish: Wish)", "Thing"),
    "summed": ("(by: Float, wish: Wish = {n: 1})", "Int"),
    "boxed": ("", "Box"),
}
_REST = """
scalar Moment
scalar Code
enum Colour { RED GREEN BLUE }
input Wish { n: Int!, words: [String!] = ["w"], colour: Colour = GREEN, more: Wish }
interface Named { id: ID }
union Either = Thing | Box
type Box implements Named { id: ID, name: String!, thing: Thing!, same: Thing, things: [Thing!]!, countN: Int! }
type Mutation { bump(by: Int = 1): Thing, bumpN(by: Int!, wish: Wish): Thing!, bumped: Int!, bumpOf: [Thing!] }
"""


def _declared() -> str:
    resolved = [
        f"{name}{end}{arguments}: {shape.format(kind)}"
        for name, (arguments, kind) in {**AT_ONCE, **WAITING}.items()
        for end, shape in SHAPES.items()
    ]
    resolved.append("changes: Int!")
    attributes = [
        f"{name}{end}: {shape.format(kind)}"
        for name, kind in (*((leaf.lower(), leaf) for leaf in LEAVES), ("near", "Thing"))
        for end, shape in SHAPES.items()
    ]
    attributes += ["name: String!", "same: Thing!", "box: Box"]
    thing, query = "\n".join(attributes + resolved), "\n".join(resolved)
    return f"{_REST} type Thing implements Named {{ {thing} }} type Query {{ {query} }}"


def _code(value: Any) -> Any:
    """How a Code is shown: in capitals; an empty one not at all, a number is refused."""
    if not isinstance(value, str):
        message = f"a {type(value).__name__} is no code"
        raise TypeError(message)
    return value.upper() or None


def new_schema() -> GraphQLSchema:
    """The schema, for whoever sets resolvers of their own."""
    schema = build_schema(_declared())
    code = schema.type_map["Code"]
    assert isinstance(code, GraphQLScalarType)
    code.coerce_output_value = _code
    return schema


class Raising:
    """An attribute that raises."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure


class Thing:
    """Something whose attributes are drawn when they are asked for."""

    kind = "Thing"

    def __init__(self, world: "World", name: str) -> None:
        self._world = world
        self.name = name

    def __getattr__(self, name: str) -> Any:
        where = (self.kind, name) if (self.kind, name) in types() else ("Thing", name)
        if where not in types():
            raise AttributeError(name)
        value = self._world.value(where, self.name)
        if isinstance(value, Raising):
            raise value.failure
        return value


class Box(Thing):
    kind = "Box"


@dataclass
class World:
    """What there is. `faults` is the part of all values that are not as they should be."""

    seed: int
    faults: float
    changes: list[str] = field(default_factory=list)

    def value(self, where: tuple[str, str], *more: Any) -> Any:
        """The value of a type's field, for whatever else it depends on; at its top it may be `Raising`."""
        draws = self._draws(where, *more)
        if draws.random() < self.faults / 4:
            return Raising(_failure(draws))
        return self._drawn(draws, types()[where])

    def fails(self, *where: Any) -> Exception | None:
        """Why everything that is asked for there fails, if it does."""
        draws = self._draws(*where)
        return _failure(draws) if draws.random() < self.faults / 4 else None

    def change(self, name: str, args: Args) -> Any:
        """Makes a change; what it gives depends on those before it."""
        self.changes.append(f"{name} {json.dumps(args, sort_keys=True)}")
        value = self.value(("Mutation", name), self.changes)
        if isinstance(value, Raising):
            raise value.failure
        return value

    def _draws(self, *where: Any) -> Random:
        return Random(zlib.crc32(repr((self.seed, where)).encode()))

    def _drawn(self, draws: Random, kind: str) -> Any:
        if draws.random() < self.faults:
            return self._fault(draws, kind)
        if not kind.endswith("!") and draws.random() < 0.15:
            return None
        kind = kind.removesuffix("!")
        if kind.startswith("["):
            return [self._drawn(draws, kind[1:-1]) for _ in range(draws.randrange(4))]
        match kind:
            case "Thing":
                return Thing(self, f"t{draws.randrange(30)}")
            case "Box":
                return Box(self, f"b{draws.randrange(9)}")
        return draws.choice(_USUAL[kind])

    def _fault(self, draws: Random, kind: str) -> Any:
        fault = draws.choice(_FAULTS)
        if fault is Exception:
            return _failure(draws)
        if callable(fault):
            items = kind.strip("[!]")
            return fault([self._drawn(draws, items), self._drawn(draws, items)])
        return fault


_USUAL: Mapping[str, Sequence[Any]] = {
    "ID": ("a", "b"),
    "String": ("", "a\u2028'\"\\é{p}"),
    "Int": (0, -(2**31), 7),
    "Float": (0.5, -0.0, 1e300),
    "Boolean": (True, False),
    "Colour": ("RED", "BLUE"),
    "Moment": ("2026-01-01T00:00:00.000Z",),
    "Code": ("a", "bc"),
}
# Null, failures, what is of another type, and lists that are none, that are not lists, or can be read once.
_FAULTS: Sequence[Any] = (
    *(None, None, Exception, Exception),
    *("x", "", 5, True, 2**31, 0.25, float("inf"), {}, b"x"),
    *(tuple, iter, list, lambda items: {"a": items}),
)


def _failure(draws: Random) -> Exception:
    message = f"failure {draws.randrange(1000)}"
    return draws.choice((ValueError, KeyError, GraphQLError))(message)


@dataclass(frozen=True)
class Loader:
    """Loads what a waiting resolver asks for."""

    world: World
    where: tuple[str, str]
    args: str
    missing: Any = None

    async def fetch(self, context: Any, keys: list[Any]) -> Mapping[Any, Any]:
        for _ in range(len(self.args) % 4):  # so that what is asked for meanwhile is asked for in its midst
            await asyncio.sleep(0)
        failure = self.world.fails("load", self.where, self.args)
        if failure:
            raise failure
        found = {key: self.world.value(self.where, self.args, key) for key in keys}
        # What is loaded is shared, so it is nothing that can be read but once.
        return {
            key: tuple(value) if isinstance(value, Iterator) else value
            for key, value in found.items()
            if value is not None
        }

    def __hash__(self) -> int:
        return hash((self.where, self.args))


@dataclass(slots=True, eq=False)
class Context(Loads):
    """What the resolvers of one request work with."""

    world: World
    columns: Any = None


def resolvers() -> FieldResolvers:
    """The resolver of every field that is not of Mutation."""
    found: dict[tuple[str, str], Attribute | LevelResolver] = {}
    for (kind, name), declared in types().items():
        bare = name.rstrip("NOf")
        if kind == "Mutation":
            continue
        if name == "changes":
            found[kind, name] = LevelResolver(_changes)
        elif bare in AT_ONCE:
            found[kind, name] = LevelResolver(_at_once((kind, name)))
        elif bare in WAITING or bare == "count":
            found[kind, name] = LevelResolver(_waiting((kind, name)))
        elif name == "name":
            found[kind, name] = Attribute("p.name", trusted=True)
        elif name in ("same", "box"):
            found[kind, name] = Attribute("p")
        elif declared.strip("[]!") in ("Thing", "Int"):
            found[kind, name] = Attribute(f"read(p, {name!r})", {"read": getattr})
        else:
            found[kind, name] = Attribute(f"p.{name}")
    return found


@cache
def types() -> Mapping[tuple[str, str], str]:
    """The declared types of all fields."""
    schema = build_schema(_declared())
    return {
        (kind, name): str(each.type)
        for kind in ("Query", "Mutation", "Thing", "Box")
        for name, each in vars(schema.type_map[kind])["fields"].items()
    }


def _changes(sources: Sequence[Any], args: Args, context: Context) -> list[int]:
    return [len(context.world.changes)] * len(sources)


def _at_once(where: tuple[str, str]) -> Callable[..., Any]:
    def resolve(sources: Sequence[Any], args: Args, context: Context) -> list[Any]:
        text = json.dumps(args, sort_keys=True)
        failure = context.world.fails("all", where, text)
        if failure:
            raise failure
        return _column([context.world.value(where, text, _key(source)) for source in sources])

    return resolve


def _waiting(where: tuple[str, str]) -> Callable[..., Any]:
    async def resolve(sources: Sequence[Any], args: Args, context: Context) -> list[Any]:
        text = json.dumps(args, sort_keys=True)
        failure = context.world.fails("all", where, text)
        if failure:
            raise failure
        found = await context.load(Loader(context.world, where, text), [_key(each) for each in sources])
        if "1" in text:  # waits a second time, for something else
            keys = [f"{_key(source)} again" for source in sources]
            found = await context.load(Loader(context.world, where, "again"), keys)
        return _column(found)

    return resolve


def _key(source: Any) -> str:
    return source.name if isinstance(source, Thing) else type(source).__name__


def _column(values: list[Any]) -> list[Any]:
    values = [value.failure if isinstance(value, Raising) else value for value in values]
    return Partial(values) if any(isinstance(value, Exception) for value in values) else values
