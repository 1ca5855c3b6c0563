"""An operation of a document: what is known of it before it is asked for, and the plans that execute it.

It is planned when it is first used and compiled when it is used a second time: most documents that are seen
once are never seen again. The plan of very many fields that fragments can make of a short document is neither
compiled nor kept.
"""

from collections.abc import Mapping
from typing import Any

from graphql import (
    FragmentDefinitionNode,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
)

from tradepost.graphql.compiled import Compiled, Odd
from tradepost.graphql.complete import Completion, Tell
from tradepost.graphql.complexity import Complexity
from tradepost.graphql.execute import fetch
from tradepost.graphql.field import Bindings
from tradepost.graphql.limits import Shape
from tradepost.graphql.plan import Plan, Planner, flags
from tradepost.graphql.variables import Coercion, Variables

_ROOTS = (None,)
_VARIANTS_KEPT = 16
_MANY_FIELDS = 2000  # of a plan: it takes 0.1 s to compile, which grows with their square, and 1 MB to keep

Fragments = Mapping[str, FragmentDefinitionNode]
Result = tuple[dict[str, Any] | None, list[dict[str, Any]]]


class PlanVariant:
    """The plan for one set of values of the variables that directives take; compiled once that pays."""

    __slots__ = ("_compiled", "_uses", "plan")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._compiled: Compiled | None = None
        self._uses = 0

    def compile(self) -> None:
        """Makes the compiled form, unless that would take long."""
        if self.plan.fields <= _MANY_FIELDS:
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


class Operation:
    """A valid operation. `depth` counts nested fields; `introspects` says whether it asks for the schema."""

    __slots__ = (
        "_bindings",
        "_flags",
        "_fragments",
        "_node",
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
        bindings: Bindings,
        fragments: Fragments,
        node: OperationDefinitionNode,
        shape: Shape,
        complexity: Complexity,
        *,
        suggestions: bool,
    ) -> None:
        self.name = node.name.value if node.name else None
        self.kind: str = node.operation.value  # query, mutation or subscription
        self.depth = shape.depth
        self.introspects = shape.introspections > 0
        self.complexity = complexity
        self.coercion = Coercion(schema, node, quiet=not suggestions)
        self._schema = schema
        self._bindings = bindings
        self._fragments = fragments
        self._node = node
        self._flags = flags(node, fragments)
        self._variants: dict[tuple[bool | None, ...], list[PlanVariant]] = {}

    def variants(self, variables: Variables) -> list[PlanVariant]:
        """What is run for these variables: one of a query, one for each root field of what runs in order.

        Raises `Refused` if a directive is given null.
        """
        coerced = variables.coerced
        values = tuple([coerced.get(name) for name in self._flags]) if self._flags else ()
        variants = self._variants.get(values)
        if variants is None:
            variants = self._planned(dict(zip(self._flags, values, strict=True)))
            if sum(each.plan.fields for each in variants) <= _MANY_FIELDS:
                if len(self._variants) >= _VARIANTS_KEPT:
                    del self._variants[next(iter(self._variants))]
                self._variants[values] = variants
        return variants

    def compile(self) -> None:
        """Makes the compiled form ahead of its first use, where that needs no variables."""
        if not self._flags:
            for each in self.variants(Variables({}, self._no_variables)):
                each.compile()

    def _no_variables(self) -> Any:
        raise AssertionError(self.name)

    def _planned(self, flags: Mapping[str, bool | None]) -> list[PlanVariant]:
        planner = Planner(self._schema, self._bindings, self._fragments, flags)
        if self._node.operation is OperationType.QUERY:
            return [PlanVariant(planner.plan(self._node))]
        return [PlanVariant(plan) for plan in planner.plans(self._node)]
