"""The forms of one operation: its plans, compiled where they are used again, or graphql-core's execution.

An operation is planned when it is first used and compiled when it is used a second time: most documents that
are seen once are never seen again. What plans do not cover, graphql-core executes.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
)

from tradepost.graphql.compiled import Compiled, Odd
from tradepost.graphql.complete import Completion, Tell
from tradepost.graphql.execute import fetch
from tradepost.graphql.field import Bindings
from tradepost.graphql.plan import Plan, Planner, Unplannable, flags
from tradepost.graphql.variables import Coercion, Variables

_ROOTS = (None,)
_VARIANTS_KEPT = 16

Result = tuple[dict[str, Any] | None, list[dict[str, Any]]]


class Variant:
    """One plan, and its compiled form once it has one."""

    __slots__ = ("_compiled", "_uses", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._compiled: Compiled | None = None
        self._uses = 0

    def compile(self) -> None:
        """Makes the compiled form."""
        self._compiled = Compiled(self.plan)

    async def run(
        self, variables: Variables, context: Any, tell: Tell, given: list[Any] | None = None
    ) -> Result:
        """The data and the errors. With `given`, that is what the one root field resolved to."""
        context.columns = self.plan.columns
        fetched = await fetch(self.plan, variables, context, _ROOTS, given)
        if fetched.usual:
            self._uses += 1
            if self._uses == 2:  # noqa: PLR2004 (see above)
                self.compile()
            if self._compiled is not None:
                try:
                    return self._compiled.data(fetched, _ROOTS), []
                except Odd:
                    pass
        completion = Completion(self.plan, fetched, tell)
        return completion.data(), completion.errors


class Bound(Protocol):
    """A schema with what stands behind its fields."""

    @property
    def schema(self) -> GraphQLSchema: ...

    @property
    def bindings(self) -> Bindings: ...


class Form:
    """What an operation is executed by."""

    def __init__(
        self, bound: Bound, document: DocumentNode, operation: OperationDefinitionNode, *, quiet: bool
    ) -> None:
        self.coercion = Coercion(bound.schema, operation, quiet=quiet)
        self._bound = bound
        self._operation = operation
        self._fragments = {
            each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
        }
        self._flags = flags(operation, self._fragments)
        self._variants: dict[tuple[bool | None, ...], list[Variant] | None] = {}

    def variants(self, variables: Variables) -> list[Variant] | None:
        """What is run for these variables: one of a query, one for each root field of what runs in order.

        None if graphql-core has to execute it.
        """
        coerced = variables.coerced
        values = tuple([coerced.get(name) for name in self._flags]) if self._flags else ()
        try:
            return self._variants[values]
        except KeyError:
            if len(self._variants) >= _VARIANTS_KEPT:
                del self._variants[next(iter(self._variants))]
            found = self._variants[values] = self._planned(dict(zip(self._flags, values, strict=True)))
            return found

    def compile(self) -> None:
        """Makes the compiled form ahead of its first use, where that needs no variables."""
        if not self._flags:
            for each in self.variants(Variables({}, self._no_variables)) or ():
                each.compile()

    def _no_variables(self) -> Any:
        raise AssertionError(self._operation)

    def _planned(self, given: Mapping[str, bool | None]) -> list[Variant] | None:
        planner = Planner(self._bound.schema, self._bound.bindings, self._fragments, given)
        try:
            if self._operation.operation is OperationType.QUERY:
                return [Variant(planner.plan(self._operation))]
            return [Variant(plan) for plan in planner.plans(self._operation)]
        except Unplannable:
            return None
