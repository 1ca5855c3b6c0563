"""What a document may be: its size before it is parsed, its shape before it is validated.

Depth counts nested fields, the root's being 1, fragments included; what lies below `__schema` and `__type`
does not count, or no tool could introspect. All of it is linear in the document, whatever its fragments do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from tradepost.graphql.errors import DOCUMENT_TOO_LARGE, QUERY_TOO_COMPLEX, QUERY_TOO_DEEP, Refused, refusal

_INTROSPECTION = ("__schema", "__type")
_MAX_INTROSPECTIONS = 4  # of one operation: tools ask once, and each may tell the whole schema


@dataclass(frozen=True)
class Limits:
    """What a document and an operation may take; 0 or more of each, `timeout` in seconds."""

    max_depth: int = 10
    max_complexity: int = 20_000
    max_tokens: int = 2000
    max_bytes: int = 65_536
    max_aliases: int = 100
    timeout: float = 10.0

    def check_size(self, text: str) -> None:
        """Raises `Refused` for a text that has too many bytes."""
        size = len(text.encode())
        if size > self.max_bytes:
            raise too_large("bytes", self.max_bytes, size)

    def check_shape(self, document: DocumentNode) -> list["Shape"]:
        """The shapes of a document's operations, in their order; raises `Refused` if one is beyond limits."""
        parts = _Parts(document)
        if parts.aliases > self.max_aliases:
            raise too_large("aliases", self.max_aliases, parts.aliases)
        shapes = [parts.shape(part) for part in parts.operations]
        for shape, part in zip(shapes, parts.operations, strict=True):
            if shape.depth > self.max_depth:
                message = f"The operation nests {shape.depth} levels of fields; {self.max_depth} are allowed"
                facts = {"limit": self.max_depth, "found": shape.depth}
                raise refusal(QUERY_TOO_DEEP, message, [part.node], **facts)
            if shape.introspections > _MAX_INTROSPECTIONS:
                message = f"The operation asks for the schema {shape.introspections} times"
                message = f"{message}; {_MAX_INTROSPECTIONS} are allowed"
                facts = {"limit": _MAX_INTROSPECTIONS, "found": shape.introspections}
                raise refusal(QUERY_TOO_COMPLEX, message, [part.node], **facts)
        return shapes


class Shape(NamedTuple):
    """How deeply an operation or fragment nests fields, and how often it asks for the schema."""

    depth: int
    introspections: int


def too_large(what: str, limit: int, found: int) -> Refused:
    """A document that holds too much of something."""
    message = f"The document has {found} {what}; {limit} are allowed"
    return refusal(DOCUMENT_TOO_LARGE, message, limit=limit, found=found)


class _Part:
    """A definition by itself: its own shape, and which fragments it spreads at which depth."""

    def __init__(self, node: OperationDefinitionNode | FragmentDefinitionNode) -> None:
        self.node = node
        self.depth = 0
        self.introspections = 0
        self.aliases = 0
        self.spreads: list[tuple[str, int]] = []
        waiting: list[tuple[SelectionSetNode, int]] = [(node.selection_set, 1)]
        while waiting:
            selections, depth = waiting.pop()
            waiting.extend(self._below(selections, depth))

    def _below(self, selections: SelectionSetNode, depth: int) -> Iterator[tuple[SelectionSetNode, int]]:
        """Takes in one selection set; those below it, with their depth: 0 where it does not count."""
        for node in selections.selections:
            if isinstance(node, FieldNode):
                self.aliases += node.alias is not None
                self.depth = max(self.depth, depth)
                asks = node.name.value in _INTROSPECTION
                self.introspections += asks
                if node.selection_set is not None:
                    yield node.selection_set, depth + 1 if depth and not asks else 0
            elif isinstance(node, InlineFragmentNode):
                yield node.selection_set, depth
            elif isinstance(node, FragmentSpreadNode) and depth:
                self.spreads.append((node.name.value, depth - 1))


class _Parts:
    """The definitions of a document, put together."""

    def __init__(self, document: DocumentNode) -> None:
        self.operations: list[_Part] = []
        self._fragments: dict[str, _Part] = {}
        self._shapes: dict[str, Shape] = {}
        self.aliases = 0
        for node in document.definitions:
            if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode):
                part = _Part(node)
                self.aliases += part.aliases
                if isinstance(node, FragmentDefinitionNode):
                    self._fragments[node.name.value] = part
                else:
                    self.operations.append(part)
        for name in self._fragments:
            self._learn(name)

    def shape(self, part: _Part) -> Shape:
        """A part's shape, with the fragments it spreads; one that is part of a cycle adds nothing."""
        depth, introspections = part.depth, part.introspections
        for name, at in part.spreads:
            below = self._shapes.get(name)
            if below is not None:
                depth = max(depth, at + below.depth)
                introspections += below.introspections
        return Shape(depth, introspections)

    def _learn(self, name: str) -> None:
        """Learns a fragment's shape after those of the fragments it spreads; validation finds the cycles."""
        path = [(name, iter(self._fragments[name].spreads))]
        entered = {name}
        while path:
            name, spreads = path[-1]
            for below, _ in spreads:
                if below in self._fragments and below not in self._shapes and below not in entered:
                    entered.add(below)
                    path.append((below, iter(self._fragments[below].spreads)))
                    break
            else:
                path.pop()
                self._shapes[name] = self.shape(self._fragments[name])
