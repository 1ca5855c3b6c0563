"""Operations drawn from the schema, with what they nest and cost counted the slow way: every fragment unfolded."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graphql import build_schema, get_named_type, get_nullable_type, is_leaf_type, is_list_type
from hypothesis import strategies as st

SCHEMA = build_schema((Path(__file__).parents[2] / "contract/schema.graphql").read_text("utf-8"))
VARIABLES = ("a", "b")
_ARGUMENTS = {"user": 'id: "1"', "order": 'id: "1"', "product": 'id: "1"'}
_DEPTH = 6

Draw = Callable[[st.SearchStrategy[Any]], Any]


class Counted(NamedTuple):
    """A selection: how deep it is, and its points for given variables."""

    depth: int
    points: Callable[[Mapping[str, int | None]], int]


class Drawn(NamedTuple):
    """A document with one operation, and what has to be found of it."""

    text: str
    depth: int
    points: Callable[[Mapping[str, int | None]], int]


class _Writer:
    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.fragments: dict[str, tuple[str, str, Counted, int]] = {}
        self.names = 0

    def selection(self, type_name: str, level: int) -> tuple[str, Counted]:
        """Some fields, fragments inlined and spread, of a type."""
        parts = [self._part(type_name, level) for _ in range(self.draw(st.integers(1, 3)))]
        counted = [each for _, each in parts]
        return " ".join(text for text, _ in parts), _together(counted)

    def _part(self, type_name: str, level: int) -> tuple[str, Counted]:
        how = self.draw(st.sampled_from(["field", "field", "field", "inline", "new", "again"]))
        known = [name for name, (of, _, _, at) in self.fragments.items() if of == type_name and at >= level]
        if how == "again" and known:
            name = self.draw(st.sampled_from(known))
            return f"...{name}", self.fragments[name][2]
        if how == "inline":
            text, counted = self.selection(type_name, level + 1)
            return f"... on {type_name} {{ {text} }}", counted
        if how == "new":
            text, counted = self.selection(type_name, level + 1)
            self.names += 1
            name = f"F{self.names}"
            self.fragments[name] = (type_name, text, counted, level)
            return f"...{name}", counted
        return self._field(type_name, level)

    def _field(self, type_name: str, level: int) -> tuple[str, Counted]:
        fields = SCHEMA.type_map[type_name].fields  # type: ignore[attr-defined]
        deep = level < _DEPTH
        names = [name for name in fields if deep or is_leaf_type(get_named_type(fields[name].type))]
        name = self.draw(st.sampled_from(names or ["__typename"]))
        self.names += 1
        alias = f"x{self.names}: "
        if name == "__typename" or is_leaf_type(get_named_type(fields[name].type)):
            return alias + name, Counted(1, lambda _: 1)
        kind = get_named_type(fields[name].type)
        arguments, size = self._arguments(type_name, name, kind.name)
        text, below = self.selection(kind.name, level + 1)
        counted = Counted(below.depth + 1, lambda given: 1 + size(given) * below.points(given))
        return f"{alias}{name}{arguments} {{ {text} }}", counted

    def _arguments(
        self, type_name: str, name: str, kind: str
    ) -> tuple[str, Callable[[Mapping[str, int | None]], int]]:
        """The arguments of a field, and how many objects it has."""
        field = SCHEMA.type_map[type_name].fields[name]  # type: ignore[attr-defined]
        if "first" in field.args:
            usual, most = (20, 100) if kind.endswith("Connection") else (50, 200)
            first = self.draw(st.none() | st.integers(0, 300) | st.sampled_from(VARIABLES))
            if isinstance(first, str):
                return f"(first: ${first})", lambda given: _page(given.get(first), usual, most)
            return "" if first is None else f"(first: {first})", lambda _: _page(first, usual, most)
        many = is_list_type(get_nullable_type(field.type)) and not type_name.endswith("Connection")
        arguments = _ARGUMENTS.get(name) if type_name == "Query" else None
        return f"({arguments})" if arguments else "", lambda _: 10 if many else 1


def _page(first: int | None, usual: int, most: int) -> int:
    return usual if first is None else max(1, min(first, most))


def _together(parts: list[Counted]) -> Counted:
    return Counted(max(part.depth for part in parts), lambda given: sum(part.points(given) for part in parts))


@st.composite
def drawn(draw: Draw) -> Drawn:
    """A valid document over the contract's schema; no field of it merges with another."""
    writer = _Writer(draw)
    text, counted = writer.selection("Query", 1)
    declared = " ".join(f"${name}: Int" for name in VARIABLES)
    fragments = "".join(
        f" fragment {name} on {of} {{ {body} }}" for name, (of, body, _, _) in writer.fragments.items()
    )
    # Every variable has to be used.
    used = " ".join(f"v{name}: users(first: ${name}) {{ totalCount }}" for name in VARIABLES)
    whole = f"query Q({declared}) {{ {text} {used} }}{fragments}"

    def points(given: Mapping[str, int | None]) -> int:
        return counted.points(given) + sum(1 + _page(given.get(name), 20, 100) for name in VARIABLES)

    return Drawn(whole, max(counted.depth, 2), points)
