"""Documents: parsed, held against the limits and validated, once for each text; the result is kept.

What is kept is bounded by its memory, and so is the time that an unseen document takes: its tokens are
counted while it is parsed, its errors print it a few times at most, and comparing its fields has a budget.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    StringValueNode,
    Visitor,
    parse,
    specified_rules,
    validate,
    visit,
)
from graphql.validation import OverlappingFieldsCanBeMergedRule, ValidationContext

from tradepost.graphql.complexity import Estimator
from tradepost.graphql.errors import (
    BAD_USER_INPUT,
    DOCUMENT_TOO_LARGE,
    GRAPHQL_PARSE_FAILED,
    Error,
    Refused,
    refusal,
    syntax_error,
    validation_errors,
)
from tradepost.graphql.field import Bindings
from tradepost.graphql.limits import Limits, Shape
from tradepost.graphql.operation import Operation

T = TypeVar("T")

MAX_MEMORY = 32 << 20  # of documents that may be asked for
_MAX_REFUSED_MEMORY = 2 << 20  # of those that may not
# Measured: an AST with its locations has 350 to 610 bytes for each token, its plan as much at most, and both
# have some thousands however small they are.
_BYTES_PER_TOKEN = 1000
_BYTES_PER_DOCUMENT = 10_000
_BYTES_PER_REFUSAL = 2000

# A document in which fields of the same name meet more often than this for each token allowed is not checked
# to the end; comparing two takes some microseconds.
_COMPARISONS_PER_TOKEN = 5
# An error may print the whole document, so a long one is told fewer.
_MAX_ERRORS = 20
_PRINTED_TOKENS = 10_000

_ABORTED = "Validation aborted."
_GIVEN_UP = " Parsing aborted."
_NUL = re.compile(r"\\u(?:0000|\{0+\})")


class Document:
    """A document that is valid and within the limits; `hash` is the SHA-256 of its text."""

    __slots__ = ("_operations", "hash", "text")

    def __init__(self, text: str, operations: Iterable[Operation]) -> None:
        self.text = text
        self.hash = hashlib.sha256(text.encode()).hexdigest()
        self._operations = {each.name: each for each in operations}

    def operation(self, name: str | None) -> Operation:
        """The operation of this name, or the only one; an empty name is none. Raises `Refused`."""
        if name:
            found = self._operations.get(name)
            if found is None:
                raise refusal(BAD_USER_INPUT, f"The document has no operation named {name}")
            return found
        if len(self._operations) != 1:
            message = f"The document has {len(self._operations)} operations; operationName has to name one"
            raise refusal(BAD_USER_INPUT, message)
        return next(iter(self._operations.values()))

    def operations(self) -> Iterator[Operation]:
        """All of them, in order."""
        return iter(self._operations.values())


class Documents:
    """All documents met, by their text. With `suggestions`, errors name what may have been meant."""

    def __init__(
        self, schema: GraphQLSchema, bindings: Bindings, limits: Limits, *, suggestions: bool = True
    ) -> None:
        self._schema = schema
        self._bindings = bindings
        self.limits = limits
        self._suggestions = suggestions
        self._known: Recent[Document] = Recent(MAX_MEMORY)
        self._refused: Recent[tuple[list[Error], int]] = Recent(_MAX_REFUSED_MEMORY)
        budget = _COMPARISONS_PER_TOKEN * limits.max_tokens
        self._rules = [
            _within(budget) if rule is OverlappingFieldsCanBeMergedRule else rule for rule in specified_rules
        ]

    def get(self, text: str) -> Document:
        """The document of a text; raises `Refused` with all that is wrong with it."""
        document = self._known.get(text)
        if document is not None:
            return document
        refused = self._refused.get(text)
        if refused is not None:
            raise Refused(*refused)
        try:
            return self._read(text)
        except Refused as new:
            size = len(text) + sum(len(error["message"]) for error in new.errors)
            self._refused.keep(text, (new.errors, new.status), _BYTES_PER_REFUSAL + size)
            raise

    def _read(self, text: str) -> Document:
        self.limits.check_size(text)
        ast = self._parsed(text)
        shapes = self.limits.check_shape(ast)
        tokens = _tokens(ast)
        self._validate(ast, tokens)
        document = Document(text, self._operations(ast, shapes))
        self._known.keep(text, document, _BYTES_PER_DOCUMENT + 2 * len(text) + _BYTES_PER_TOKEN * tokens)
        return document

    def _operations(self, ast: DocumentNode, shapes: list[Shape]) -> Iterator[Operation]:
        fragments = {
            node.name.value: node for node in ast.definitions if isinstance(node, FragmentDefinitionNode)
        }
        estimator = Estimator(self._schema, fragments, self.limits.max_complexity)
        nodes = [node for node in ast.definitions if isinstance(node, OperationDefinitionNode)]
        for node, shape in zip(nodes, shapes, strict=True):
            yield Operation(
                self._schema,
                self._bindings,
                fragments,
                node,
                shape,
                estimator.complexity(node),
                suggestions=self._suggestions,
            )

    def _parsed(self, text: str) -> DocumentNode:
        if "\x00" in text:
            message = "The document contains a NUL character; remove it"
            raise refusal(GRAPHQL_PARSE_FAILED, message)
        most = self.limits.max_tokens
        try:
            ast = parse(text, max_lexical_tokens=most, max_comments=most)
        except GraphQLError as error:
            if error.message.endswith(_GIVEN_UP):
                message = error.message.removeprefix("Syntax Error: ").removesuffix(_GIVEN_UP)
                raise refusal(DOCUMENT_TOO_LARGE, message, limit=most) from None
            raise syntax_error(error) from None
        if _NUL.search(text):
            visit(ast, _NulFinder())
        return ast

    def _validate(self, ast: DocumentNode, tokens: int) -> None:
        errors = validate(
            self._schema,
            ast,
            self._rules,
            max_errors=min(_MAX_ERRORS, max(1, _PRINTED_TOKENS // tokens)),
            hide_suggestions=not self._suggestions,
        )
        if len(errors) == 1 and errors[0].message == _ABORTED:
            message = "The document selects the same fields, or spreads the same fragments, too many times"
            raise refusal(DOCUMENT_TOO_LARGE, message)
        if errors:
            raise validation_errors(errors)


class Recent(Generic[T]):
    """What was used last, by text, as far as it fits into so many bytes."""

    def __init__(self, max_memory: int) -> None:
        self._left = max_memory
        self._entries: dict[str, tuple[T, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, text: str) -> T | None:
        """What is kept under a text; it is then the one used last."""
        entry = self._entries.pop(text, None)
        if entry is None:
            return None
        self._entries[text] = entry
        return entry[0]

    def keep(self, text: str, value: T, size: int) -> None:
        """Keeps a value of so many bytes, and forgets those that were not used for longest."""
        self._left += self._entries.pop(text, (None, 0))[1] - size
        self._entries[text] = (value, size)
        while self._left < 0:
            oldest = next(iter(self._entries))
            self._left += self._entries.pop(oldest)[1]


class _NulFinder(Visitor):
    """Refuses strings that no engine keeps."""

    def enter_string_value(self, node: StringValueNode, *_: object) -> None:
        if "\x00" in node.value:
            message = "A string contains a NUL character; remove it"
            raise refusal(BAD_USER_INPUT, message, [node])


def _within(budget: int) -> type[OverlappingFieldsCanBeMergedRule]:
    """The rule that compares fields of the same name, with a budget of its own."""

    class Budgeted(OverlappingFieldsCanBeMergedRule):
        def __init__(self, context: ValidationContext) -> None:
            super().__init__(context)
            self.rule_context.remaining_complexity_budget = budget

    return Budgeted


def _tokens(ast: DocumentNode) -> int:
    """How many tokens a document has, comments included."""
    found = 0
    token = ast.loc.start_token if ast.loc else None
    while token is not None:
        found += 1
        token = token.next
    return found
