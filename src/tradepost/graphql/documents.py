"""Documents: parsed, measured and validated once for each text, and cached.

The cache is bounded in memory, and a new document in the time that it takes: its tokens are counted while it
is parsed, its errors print it a few times at most, and the comparison of its fields has a budget.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator

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
from tradepost.graphql.field import FieldResolvers
from tradepost.graphql.limits import Limits, OperationSize
from tradepost.graphql.lru_cache import LRUCache
from tradepost.graphql.operation import ExecutableOperation

MAX_MEMORY = 32 << 20  # bytes, of valid documents
_MAX_REFUSED_MEMORY = 2 << 20  # bytes, of the errors of others
# Measured: an AST with its locations takes 350 to 610 bytes a token, its plan as much unless fragments
# multiply its fields, and both some thousands however small they are.
_BYTES_PER_TOKEN = 1000
_BYTES_PER_DOCUMENT = 10_000
_BYTES_PER_REFUSAL = 2000

# Comparisons of fields with the same response key, for each token allowed; each takes some microseconds.
_COMPARISONS_PER_TOKEN = 5
# An error may print the whole document, so a long one gets fewer.
_MAX_ERRORS = 20
_PRINTED_TOKENS = 10_000

_ABORTED = "Validation aborted."
_GIVEN_UP = " Parsing aborted."
_NUL = re.compile(r"\\u(?:0000|\{0+\})")


class ValidDocument:
    """A document that is valid and within the limits; `hash` is the SHA-256 of its text in hexadecimal."""

    __slots__ = ("_operations", "hash", "text")

    def __init__(self, text: str, operations: Iterable[ExecutableOperation]) -> None:
        self.text = text
        self.hash = hashlib.sha256(text.encode()).hexdigest()
        self._operations = {each.name: each for each in operations}

    def operation(self, name: str | None) -> ExecutableOperation:
        """The operation with this name, or without a name the only one; raises `Refused` if there is none."""
        if name:
            operation = self._operations.get(name)
            if operation is None:
                raise refusal(BAD_USER_INPUT, f"The document has no operation named {name}")
            return operation
        if len(self._operations) != 1:
            message = (
                f"The document has {len(self._operations)} operations; operationName must name one of them"
            )
            raise refusal(BAD_USER_INPUT, message)
        return next(iter(self._operations.values()))

    def operations(self) -> Iterator[ExecutableOperation]:
        """All operations, in the order of the document."""
        return iter(self._operations.values())


class DocumentCache:
    """Documents by their text. With `suggestions`, validation errors name similar fields and types."""

    def __init__(
        self, schema: GraphQLSchema, resolvers: FieldResolvers, limits: Limits, *, suggestions: bool = True
    ) -> None:
        self._schema = schema
        self._resolvers = resolvers
        self.limits = limits
        self._suggestions = suggestions
        self._valid: LRUCache[ValidDocument] = LRUCache(MAX_MEMORY)
        self._refused: LRUCache[tuple[list[Error], int]] = LRUCache(_MAX_REFUSED_MEMORY)
        budget = _COMPARISONS_PER_TOKEN * limits.max_tokens
        self._rules = [
            _within(budget) if rule is OverlappingFieldsCanBeMergedRule else rule for rule in specified_rules
        ]

    def get(self, text: str) -> ValidDocument:
        """The document of a text; raises `Refused` with all that is wrong with the text."""
        document = self._valid.get(text)
        if document is not None:
            return document
        refused = self._refused.get(text)
        if refused is not None:
            raise Refused(*refused)
        try:
            return self._read(text)
        except Refused as new:
            size = len(text) + sum(len(error["message"]) for error in new.errors)
            self._refused.put(text, (new.errors, new.status), _BYTES_PER_REFUSAL + size)
            raise

    def _read(self, text: str) -> ValidDocument:
        self.limits.check_size(text)
        ast = self._parsed(text)
        sizes = self.limits.measured(ast)
        tokens = _tokens(ast)
        self._validate(ast, tokens)
        document = ValidDocument(text, self._operations(ast, sizes))
        self._valid.put(text, document, _BYTES_PER_DOCUMENT + 2 * len(text) + _BYTES_PER_TOKEN * tokens)
        return document

    def _operations(self, ast: DocumentNode, sizes: list[OperationSize]) -> Iterator[ExecutableOperation]:
        fragments = {
            node.name.value: node for node in ast.definitions if isinstance(node, FragmentDefinitionNode)
        }
        estimator = Estimator(self._schema, fragments, self.limits.max_complexity)
        nodes = [node for node in ast.definitions if isinstance(node, OperationDefinitionNode)]
        for node, size in zip(nodes, sizes, strict=True):
            yield ExecutableOperation(
                self._schema,
                self._resolvers,
                fragments,
                node,
                size,
                estimator.complexity(node),
                suggestions=self._suggestions,
            )

    def _parsed(self, text: str) -> DocumentNode:
        if "\x00" in text:
            message = "The document must not contain a NUL character"
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


class _NulFinder(Visitor):
    """Refuses strings with a NUL, which no engine can store."""

    def enter_string_value(self, node: StringValueNode, *_: object) -> None:
        if "\x00" in node.value:
            message = "A string must not contain a NUL character"
            raise refusal(BAD_USER_INPUT, message, [node])


def _within(budget: int) -> type[OverlappingFieldsCanBeMergedRule]:
    """The rule that compares fields with the same response key, with a budget of comparisons."""

    class Budgeted(OverlappingFieldsCanBeMergedRule):
        def __init__(self, context: ValidationContext) -> None:
            super().__init__(context)
            self.rule_context.remaining_complexity_budget = budget

    return Budgeted


def _tokens(ast: DocumentNode) -> int:
    """The number of tokens of a document, comments included."""
    tokens = 0
    token = ast.loc.start_token if ast.loc else None
    while token is not None:
        tokens += 1
        token = token.next
    return tokens
