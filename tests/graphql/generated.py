"""Random operations on the schema of `world.py`: valid by construction, with all that a document can say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
)

Given = Mapping[str, Any]
_Named = tuple[str, GraphQLNamedType]
_Fields = Sequence[_Named]

# What a caller may call a field: what generated Python is made of, and what Python knows.
KEYS = (
    *("p", "c", "v1", "v2", "rest", "add", "odd", "columns", "sources", "roots", "read", "of_Code"),
    *("zip", "list", "len", "iter", "islice", "undefined", "class", "None", "def", "lambda", "__p", "_"),
)
_DEPTH = 4
_FIELDS = 24
_TYPES = ("Thing", "Box", "Wish", "Colour", "Named", "Either", "__Type", "Int", "Nothing")


@dataclass(frozen=True)
class Operation:
    """An operation as text, and sets of values for its variables."""

    text: str
    given: tuple[Given, ...]


def operation(schema: GraphQLSchema, seed: int) -> Operation:
    """The operation of a seed."""
    return _Writer(schema, Random(seed)).operation()


class _Writer:
    def __init__(self, schema: GraphQLSchema, draws: Random) -> None:
        self._schema = schema
        self._draws = draws
        self._left = draws.randint(3, _FIELDS)
        self._introspects = draws.random() < 0.4
        self._keys: dict[str, str] = {}  # what is asked for under a response key, the same wherever it stands
        self._asked: dict[tuple[str, str], list[str]] = {}  # what was asked of a field
        self._fragments: dict[str, list[str]] = {}  # names by type
        self._written: list[str] = []
        self._declared: dict[str, tuple[str, Any]] = {}  # variables: type and default as written, and type

    def operation(self) -> Operation:
        kind = "mutation" if self._chance(0.15) else "query"
        root = self._schema.type_map[kind.title()]
        assert isinstance(root, GraphQLObjectType)
        body = self._selection(root, _DEPTH)
        variables = ", ".join(f"${name}: {written}" for name, (written, _) in self._declared.items())
        text = f"{kind} {f'({variables})' if variables else ''} {body} {' '.join(self._written)}"
        return Operation(text, tuple(self._given() for _ in range(2 if variables else 1)))

    def _chance(self, part: float) -> bool:
        return self._draws.random() < part

    # What is selected

    def _selection(self, kind: GraphQLObjectType, depth: int) -> str:
        parts = [self._part(kind, depth) for _ in range(self._draws.randint(1, 5))]
        return f"{{ {' '.join(parts)} }}"

    def _part(self, kind: GraphQLObjectType, depth: int) -> str:
        draw = self._draws.random()
        if draw < 0.06:
            return f"{self._draws.choice(('', 'what: '))}__typename"
        if draw < 0.14 and depth > 1:
            body = self._selection(kind, depth - 1)
            if kind.interfaces and self._chance(0.3):
                body = f"{{ ... on {kind.name} {body} }}"
                wider = self._draws.choice((kind.interfaces[0].name, "Either"))
                return f"... on {wider}{self._directives()} {body}"
            return f"... {self._draws.choice(('', f'on {kind.name}'))}{self._directives()} {body}"
        if draw < 0.24 and depth > 1:
            return f"...{self._fragment(kind, depth - 1)}{self._directives()}"
        if draw < 0.4 and self._introspects and kind is self._schema.query_type:
            return self._introspection()
        return self._field(kind, depth)

    def _introspection(self) -> str:
        """The whole schema or a type of it, once in a document; below it are fields like any others."""
        self._introspects = False
        number = len(self._keys)
        self._keys[f"i{number}"] = ""
        name, asked = "__Schema", "__schema"
        if self._chance(0.6):
            name, asked = "__Type", f'__type(name: "{self._draws.choice(_TYPES)}")'
        kind = self._schema.type_map[name]
        assert isinstance(kind, GraphQLObjectType)
        return f"i{number}: {asked}{self._directives()} {self._selection(kind, _DEPTH - 1)}"

    def _fragment(self, kind: GraphQLObjectType, depth: int) -> str:
        known = self._fragments.get(kind.name, [])
        if known and self._chance(0.4):
            return self._draws.choice(known)
        body = self._selection(kind, depth)  # in which this one cannot stand
        name = f"F{len(self._written)}"
        self._written.append(f"fragment {name} on {kind.name} {body}")
        self._fragments.setdefault(kind.name, []).append(name)
        return name

    def _field(self, kind: GraphQLObjectType, depth: int) -> str:
        self._left -= 1
        name, below = self._draws.choice(self._fields(kind, depth))
        asked = self._asked.setdefault((kind.name, name), [])
        if asked and self._chance(0.5):  # merges with what was asked for before
            head = self._draws.choice(asked)
        else:
            head = self._head(name, kind.fields[name])
            asked.append(head)
        head += self._directives()
        if isinstance(below, GraphQLObjectType):
            return f"{head} {self._selection(below, depth - 1)}"
        return head

    def _fields(self, kind: GraphQLObjectType, depth: int) -> _Fields:
        """Fields to draw from. Objects are asked for where there is room, and then as often as leaves."""
        leaves, objects = _fields_of(kind)
        if depth <= 1 or self._left <= 0 or not objects:
            return leaves
        return objects if self._chance(0.5) or not leaves else leaves

    def _head(self, name: str, field: GraphQLField) -> str:
        """A field with its arguments, under a key that stands for nothing else in the document."""
        given = [
            f"{argument}: {self._value(each.type, each)}"
            for argument, each in field.args.items()
            if (isinstance(each.type, GraphQLNonNull) and each.default is None) or self._chance(0.5)
        ]
        asked = f"{name}({', '.join(given)})" if given else name
        for key in (self._draws.choice((name, *KEYS)), name, self._draws.choice(KEYS)):
            if self._keys.setdefault(key, asked) == asked:
                return asked if key == name else f"{key}: {asked}"
        number = len(self._keys)
        self._keys[f"k{number}"] = asked
        return f"k{number}: {asked}"

    def _directives(self) -> str:
        written = ""
        for name in ("skip", "include"):
            if self._chance(0.07):
                boolean = GraphQLNonNull(GraphQLBoolean)
                given = self._variable(boolean) if self._chance(0.6) else self._literal(boolean)
                written += f" @{name}(if: {given})"
        return written

    # What is given

    def _value(self, kind: Any, place: Any = None) -> str:
        """A value as a document has it, or a variable."""
        return self._variable(kind, place) if self._chance(0.4) else self._literal(kind)

    def _literal(self, kind: Any, *, constant: bool = False) -> str:
        if not isinstance(kind, GraphQLNonNull) and self._chance(0.1):
            return "null"
        kind = _nullable(kind)
        within = partial(self._literal, constant=True) if constant else self._value
        if isinstance(kind, GraphQLList):
            if self._chance(0.2):
                return self._literal(_required(kind.of_type), constant=constant)
            items = [within(kind.of_type) for _ in range(self._draws.randrange(3))]
            return f"[{', '.join(items)}]"
        if isinstance(kind, GraphQLInputObjectType):
            given = [f"{name}: {within(each.type)}" for name, each in self._some(kind)]
            return f"{{{', '.join(given)}}}"
        return self._draws.choice(_LITERALS[kind.name])

    def _some(self, kind: GraphQLInputObjectType) -> list[tuple[str, GraphQLInputField]]:
        return [(name, each) for name, each in kind.fields.items() if name == "n" or self._chance(0.3)]

    def _variable(self, kind: Any, place: Any = None) -> str:
        """A variable that may stand where a value of a type is taken (specification, 5.8.5)."""
        nullable = _nullable(kind)
        default = f" = {self._literal(_required(nullable), constant=True)}" if self._chance(0.3) else ""
        may_be_null = kind is nullable or default or getattr(place, "default", None) is not None
        declared = nullable if may_be_null and self._chance(0.7) else _required(nullable)
        text = f"{declared}{default}"
        known = [name for name, (each, _) in self._declared.items() if each == text]
        if known and self._chance(0.5):
            return f"${self._draws.choice(known)}"
        name = f"v{len(self._declared)}"
        self._declared[name] = text, declared
        return f"${name}"

    def _given(self) -> Given:
        found = {}
        for name, (text, kind) in self._declared.items():
            may_be_omitted = "=" in text or not isinstance(kind, GraphQLNonNull)
            if not (may_be_omitted and self._chance(0.25)):
                found[name] = self._plain(kind)
        return found

    def _plain(self, kind: Any) -> Any:
        """A value of a variable, as JSON has it; rarely one that is none."""
        if self._chance(0.005):
            return self._draws.choice((None, "x", [[]], {"m": 1}, 2**40))
        if not isinstance(kind, GraphQLNonNull) and self._chance(0.12):
            return None
        kind = _nullable(kind)
        if isinstance(kind, GraphQLList):
            if self._chance(0.2):
                return self._plain(_required(kind.of_type))
            return [self._plain(kind.of_type) for _ in range(self._draws.randrange(3))]
        if isinstance(kind, GraphQLInputObjectType):
            return {name: self._plain(each.type) for name, each in self._some(kind)}
        return self._draws.choice(_PLAIN[kind.name])


@cache
def _fields_of(kind: GraphQLObjectType) -> tuple[_Fields, _Fields]:
    """A type's leaves and its objects."""
    leaves, objects = list[_Named](), list[_Named]()
    for name, each in kind.fields.items():
        below = get_named_type(each.type)
        (leaves if is_leaf_type(below) else objects).append((name, below))
    return leaves, objects


def _nullable(kind: Any) -> Any:
    return kind.of_type if isinstance(kind, GraphQLNonNull) else kind


def _required(kind: Any) -> Any:
    return kind if isinstance(kind, GraphQLNonNull) else GraphQLNonNull(kind)


_LITERALS = {
    "Int": ("1", "2", "-7"),
    "Float": ("1.5", "2"),
    "String": ('"w"', '"\\u00e9"', '"""block"""'),
    "Boolean": ("true", "false"),
    "Colour": ("RED", "BLUE"),
}
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "Int": (1, 2, 3.0),
    "Float": (1.5, 2),
    "String": ("w", "é"),
    "Boolean": (True, False),
    "Colour": ("RED", "BLUE"),
}
