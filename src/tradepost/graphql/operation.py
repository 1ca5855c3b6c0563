"""An operation of a document: what is known of it before it runs, and the plans that execute it.

It is planned at its first use and compiled at its second: most documents that are seen once are never seen
again. A plan of very many fields, which fragments can make of a short document, is neither compiled nor kept.
"""

from collections.abc import Mapping
from typing import Any

from graphql import (
    FragmentDefinitionNode,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
)

from tradepost.graphql.compiled import CompiledPlan, NeedsCompletion
from tradepost.graphql.complete import Completion, ToError
from tradepost.graphql.complexity import Complexity
from tradepost.graphql.execute import fetch
from tradepost.graphql.field import FieldResolvers
from tradepost.graphql.limits import OperationSize
from tradepost.graphql.plan import Plan, Planner, flags
from tradepost.graphql.variables import Coercion, Variables

_ROOTS = (None,)
_MAX_VARIANTS = 16  # of an operation that are kept, each up to 2 MB with its function
# A plan of 2,000 fields takes 0.1 s to compile; the time grows with the square of the fields.
_MAX_FIELDS = 2000

Fragments = Mapping[str, FragmentDefinitionNode]
Result = tuple[dict[str, Any] | None, list[dict[str, Any]]]  # data and errors


class PlanVariant:
    """The plan for one set of values of the variables that directives take."""

    __slots__ = ("_compiled", "_uses", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._compiled: CompiledPlan | None = None
        self._uses = 0

    def compile(self) -> None:
        """Compiles the plan unless it has too many fields."""
        if self.plan.fields <= _MAX_FIELDS:
            self._compiled = CompiledPlan(self.plan)

    async def run(
        self, variables: Variables, context: Any, to_error: ToError, root_value: Any = None
    ) -> Result:
        """The data and the errors; `root_value` is the value of a root field that has no resolver."""
        context.columns = self.plan.columns
        fetched = await fetch(self.plan, variables, context, _ROOTS, root_value)
        if fetched.clean:
            self._uses += 1
            if self._uses == 2:  # noqa: PLR2004 (see above)
                self.compile()
            if self._compiled is not None:
                try:
                    return self._compiled.data(fetched, _ROOTS), []
                except NeedsCompletion:
                    pass
        completion = Completion(self.plan, fetched, to_error)
        return completion.data(), completion.errors


class ExecutableOperation:
    """A valid operation. `kind` is query, mutation or subscription; `depth` is in levels of fields."""

    __slots__ = (
        "_flags",
        "_fragments",
        "_node",
        "_resolvers",
        "_schema",
        "_variants",
        "coercion",
        "complexity",
        "depth",
        "introspects",
        "kind",
        "name",
    )

    def __init__(
        self,
        schema: GraphQLSchema,
        resolvers: FieldResolvers,
        fragments: Fragments,
        node: OperationDefinitionNode,
        size: OperationSize,
        complexity: Complexity,
        *,
        suggestions: bool,
    ) -> None:
        self.name = node.name.value if node.name else None
        self.kind: str = node.operation.value
        self.depth = size.depth
        self.introspects = size.introspections > 0
        self.complexity = complexity
        self.coercion = Coercion(schema, node, suggestions=suggestions)
        self._schema = schema
        self._resolvers = resolvers
        self._fragments = fragments
        self._node = node
        self._flags = flags(node, fragments)
        self._variants: dict[tuple[bool | None, ...], list[PlanVariant]] = {}

    def variants(self, variables: Variables) -> list[PlanVariant]:
        """What to run for these variables: one plan of a query, one for each root field of the other kinds.

        Raises `Refused` if a directive is given null.
        """
        coerced = variables.coerced
        values = tuple([coerced.get(name) for name in self._flags]) if self._flags else ()
        variants = self._variants.get(values)
        if variants is None:
            variants = self._planned(dict(zip(self._flags, values, strict=True)))
            if sum(each.plan.fields for each in variants) <= _MAX_FIELDS:
                if len(self._variants) >= _MAX_VARIANTS:
                    del self._variants[next(iter(self._variants))]
                self._variants[values] = variants
        return variants

    def compile(self) -> None:
        """Compiles the operation ahead of its first use, if its plan depends on no variables."""
        if not self._flags:
            for each in self.variants(Variables({}, self._no_variables)):
                each.compile()

    def _no_variables(self) -> Any:
        raise AssertionError(self.name)

    def _planned(self, values: Mapping[str, bool | None]) -> list[PlanVariant]:
        planner = Planner(self._schema, self._resolvers, self._fragments, values)
        if self._node.operation is OperationType.QUERY:
            return [PlanVariant(planner.plan(self._node))]
        return [PlanVariant(plan) for plan in planner.plans(self._node)]
