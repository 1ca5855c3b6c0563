"""The limits of a document: its bytes before it is parsed, its other measures before it is validated.

Depth counts nested fields, root fields being 1, fragments included. Fields below `__schema` and `__type` do
not count, or no tool could introspect. Measuring is linear in the document, however often its fragments are
spread.
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
_MAX_INTROSPECTIONS = 4  # of one operation: tools ask once, and each may return the whole schema


@dataclass(frozen=True)
class Limits:
    """The most that a document (tokens, bytes, aliases) and an operation (depth, complexity) may have."""

    max_depth: int = 10
    max_complexity: int = 20_000
    max_tokens: int = 2000
    max_bytes: int = 65_536
    max_aliases: int = 100

    def check_size(self, text: str) -> None:
        """Raises `Refused` for a text that has too many bytes."""
        size = len(text.encode())
        if size > self.max_bytes:
            raise too_large("bytes", self.max_bytes, size)

    def measured(self, document: DocumentNode) -> list["OperationSize"]:
        """The sizes of a document's operations, in their order; raises `Refused` if one exceeds a limit."""
        parts = _Parts(document)
        if parts.aliases > self.max_aliases:
            raise too_large("aliases", self.max_aliases, parts.aliases)
        sizes = [parts.size(part) for part in parts.operations]
        for size, part in zip(sizes, parts.operations, strict=True):
            if size.depth > self.max_depth:
                message = f"The operation nests {size.depth} levels of fields; {self.max_depth} are allowed"
                facts = {"limit": self.max_depth, "found": size.depth}
                raise refusal(QUERY_TOO_DEEP, message, [part.node], **facts)
            if size.introspections > _MAX_INTROSPECTIONS:
                message = f"The operation asks for the schema {size.introspections} times"
                message = f"{message}; {_MAX_INTROSPECTIONS} are allowed"
                facts = {"limit": _MAX_INTROSPECTIONS, "found": size.introspections}
                raise refusal(QUERY_TOO_COMPLEX, message, [part.node], **facts)
        return sizes


class OperationSize(NamedTuple):
    """How many levels of fields an operation or fragment nests, and how often it introspects."""

    depth: int
    introspections: int


def too_large(what: str, limit: int, found: int) -> Refused:
    """The refusal of a document that exceeds a limit."""
    message = f"The document has {found} {what}; {limit} are allowed"
    return refusal(DOCUMENT_TOO_LARGE, message, limit=limit, found=found)


class _Part:
    """A definition without its fragments: its own size, and which fragments it spreads at which depth."""

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
        """Measures one selection set; yields the sets below it with their depths, 0 where none counts."""
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
    """The definitions of a document, measured together."""

    def __init__(self, document: DocumentNode) -> None:
        self.operations: list[_Part] = []
        self._fragments: dict[str, _Part] = {}
        self._sizes: dict[str, OperationSize] = {}
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

    def size(self, part: _Part) -> OperationSize:
        """A part's size with the fragments that it spreads; a fragment in a cycle adds nothing."""
        depth, introspections = part.depth, part.introspections
        for name, at in part.spreads:
            below = self._sizes.get(name)
            if below is not None:
                depth = max(depth, at + below.depth)
                introspections += below.introspections
        return OperationSize(depth, introspections)

    def _learn(self, name: str) -> None:
        """Measures a fragment after the fragments that it spreads; validation finds the cycles."""
        path = [(name, iter(self._fragments[name].spreads))]
        entered = {name}
        while path:
            name, spreads = path[-1]
            for below, _ in spreads:
                if below in self._fragments and below not in self._sizes and below not in entered:
                    entered.add(below)
                    path.append((below, iter(self._fragments[below].spreads)))
                    break
            else:
                path.pop()
                self._sizes[name] = self.size(self._fragments[name])
