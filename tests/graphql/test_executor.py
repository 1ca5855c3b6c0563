"""Laws of the executor that no single answer shows: what is loaded and when, failures, cancellation, bounds."""

import asyncio
import gc
import keyword
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from graphql import OperationDefinitionNode, build_schema, get_variable_values, parse
from hypothesis import given
from hypothesis import strategies as st

from tests.graphql.executors import Asked, Executors, operation_of
from tests.graphql.generated import KEYS
from tests.graphql.test_differential import check
from tradepost.graphql.compiled import CompiledPlan
from tradepost.graphql.errors import Refused
from tradepost.graphql.field import Args, Attribute, FieldResolvers, LevelResolver
from tradepost.graphql.loads import Loads
from tradepost.graphql.operation import ExecutableOperation
from tradepost.graphql.variables import BadVariables

WAIT = 20.0  # seconds after which what has not come will not come
SCHEMA = """
type Query { things(n: Int!): [Thing!]! others(n: Int!): [Thing!]! said(text: String): String
    few: [Int] none: [Int] slow: Int fast: Int both: Int }
type Thing { id: ID! label: String! other: String! size: Int! twice: Int!
    friend: Thing friends: [Thing!]! origin: String! }
"""


class Thing(NamedTuple):
    """A number, and where it was first met."""

    number: int
    origin: str


@dataclass(slots=True, eq=False)
class Request(Loads):
    """The context of one request: what it fetched, and what its fetches wait for or meet."""

    fetched: list[tuple[str, list[int]]] = field(default_factory=list)
    failures: Mapping[str, int] = field(default_factory=dict)  # how often a loader fails first
    gate: Callable[[], Awaitable[Any]] | None = None
    columns: Any = None
    closed: list[str] = field(default_factory=list)

    def times(self, name: str) -> int:
        return sum(each == name for each, _ in self.fetched)


@dataclass(frozen=True)
class Loader:
    """Loads something of numbers."""

    name: str
    missing: None = None

    async def fetch(self, context: Request, keys: list[int]) -> Mapping[int, Any]:
        context.fetched.append((self.name, keys))
        if context.gate:
            await context.gate()
        if context.times(self.name) <= context.failures.get(self.name, 0):
            raise ValueError(self.name)
        return {key: _LOADED[self.name](key) for key in keys}


_LOADED: Mapping[str, Callable[[int], Any]] = {
    "size": lambda key: key * key,
    "friend": lambda key: Thing(key + 1, "friend"),
    "friends": lambda key: [Thing(key + 10, "friends"), Thing(key + 20, "friends")],
}


def loaded(name: str) -> LevelResolver:
    async def resolve(sources: Sequence[Thing], args: Args, context: Request) -> list[Any]:
        try:
            return await context.load(Loader(name), [source.number for source in sources])
        finally:
            context.closed.append(name)

    return LevelResolver(resolve)


def at_once(value: Callable[[Args], Any]) -> LevelResolver:
    return LevelResolver(lambda sources, args, _: [value(args)] * len(sources))


async def slow(sources: Sequence[Any], args: Args, context: Request) -> list[int]:
    await asyncio.sleep(0)
    return [1] * len(sources)


async def both(sources: Sequence[Any], args: Args, context: Request) -> list[Any]:
    """Waits for something else between two loads."""
    (first,) = await context.load(Loader("size"), [3])
    await asyncio.sleep(0)
    (second,) = await context.load(Loader("size"), [4])
    return [first + second] * len(sources)


async def twice(sources: Sequence[Thing], args: Args, context: Request) -> list[Any]:
    first = await context.load(Loader("size"), [source.number for source in sources])
    return await context.load(Loader("size"), first)


async def fast(sources: Sequence[Any], args: Args, context: Request) -> list[Any]:
    return await context.load(Loader("size"), [2] * len(sources))


RESOLVERS: FieldResolvers = {
    ("Query", "things"): at_once(lambda args: [Thing(number, "things") for number in range(args["n"])]),
    ("Query", "others"): at_once(lambda args: [Thing(number, "others") for number in range(args["n"])]),
    ("Query", "said"): at_once(lambda args: args.get("text")),
    ("Query", "few"): LevelResolver(lambda sources, args, context: []),
    ("Query", "none"): LevelResolver(lambda sources, args, context: None),  # type: ignore[arg-type,return-value]
    ("Query", "slow"): LevelResolver(slow),
    ("Query", "both"): LevelResolver(both),
    ("Query", "fast"): LevelResolver(fast),
    ("Thing", "twice"): LevelResolver(twice),
    ("Thing", "id"): Attribute("str(p[0])"),
    ("Thing", "label"): Attribute("say(p[0])", {"say": "thing {}".format}),
    ("Thing", "other"): Attribute("say(p[0])", {"say": "another {}".format}),
    ("Thing", "origin"): LevelResolver(lambda sources, args, _: [sources[0].origin] * len(sources)),
    **{("Thing", name): loaded(name) for name in _LOADED},
}


class Answer(NamedTuple):
    data: Any
    errors: dict[str, str]


Execute = Callable[..., Awaitable[Answer]]


def operation(text: str) -> ExecutableOperation:
    return operation_of(build_schema(SCHEMA), RESOLVERS, text)


async def compiled(text: str, request: Request, **values: Any) -> Answer:
    return await executed(text, request, values, ahead=True)


async def completed(text: str, request: Request, **values: Any) -> Answer:
    return await executed(text, request, values, ahead=False)


async def executed(text: str, request: Request, values: Mapping[str, Any], *, ahead: bool) -> Answer:
    asked = operation(text)
    variables = asked.coercion.coerced(values)
    (variant,) = asked.variants(variables)
    if ahead:
        variant.compile()
    return answer(*await variant.run(variables, request, to_error))


def to_error(failure: Exception, nodes: Any, path: Sequence[str | int]) -> dict[str, Any]:
    return {"path": ".".join(map(str, path)), "message": str(failure)}


def answer(data: Any, errors: Sequence[Mapping[str, Any]]) -> Answer:
    return Answer(data, {each["path"]: each["message"] for each in errors})


def run(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, WAIT)

    return asyncio.run(bounded())


@pytest.fixture(params=[compiled, completed])
def execute(request: pytest.FixtureRequest) -> Execute:
    """Each way of putting an answer together in turn."""
    found: Execute = request.param
    return found


@pytest.fixture(scope="module")
def executors() -> Executors:
    return Executors()


@pytest.mark.parametrize("width", [1, 50])
def test_a_level_is_one_load_however_wide_and_however_often_asked(execute: Execute, width: int) -> None:
    """Whatever the objects of a level ask for, under whatever aliases, is fetched at once, and once."""
    request = Request()
    text = """query($n: Int!) { things(n: $n) {
        size again: size friend { id size } a: friend { b: size } c: friend { friends { size } d: friends { size } }
    } }"""
    found = run(execute(text, request, n=width))
    assert not found.errors
    assert [each["c"]["friends"][1]["size"] for each in found.data["things"]] == [
        (number + 21) ** 2 for number in range(width)
    ]
    assert Counter(name for name, _ in request.fetched) == {"size": 3, "friend": 1, "friends": 1}
    sizes = [key for name, keys in request.fetched if name == "size" for key in keys]
    assert len(sizes) == len(set(sizes))


def test_loads_are_of_one_request(execute: Execute) -> None:
    """Two requests that wait for the same loader at the same time each fetch for themselves."""

    async def two() -> list[Request]:
        met = asyncio.Barrier(2)
        requests = [Request(gate=met.wait), Request(gate=met.wait)]
        text = "query($n: Int!) { things(n: $n) { size } }"
        await asyncio.gather(*[execute(text, each, n=number + 1) for number, each in enumerate(requests)])
        return requests

    one, other = run(two())
    assert one.fetched == [("size", [0])]
    assert other.fetched == [("size", [0, 1])]


def test_a_resolver_may_wait_for_something_else(execute: Execute) -> None:
    """What waits for something other than its loads is answered like the rest, beside others or alone."""
    for text in ("{ both }", "{ slow }", "{ fast slow both again: fast }"):
        found = run(execute(text, Request()))
        assert not found.errors
        assert found.data == {key: {"both": 25, "slow": 1, "fast": 4, "again": 4}[key] for key in found.data}


@pytest.mark.parametrize("turns", range(8))
def test_what_is_asked_for_while_a_load_is_made_is_answered(execute: Execute, turns: int) -> None:
    """However long a load takes, what others ask for meanwhile is loaded too."""

    async def gate() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    text = "{ fast things(n: 3) { twice size friend { twice size friend { size } } friends { twice } } }"
    found = run(execute(text, Request(gate=gate)))
    assert found == run(execute(text, Request()))
    assert not found.errors


def test_a_failing_load_fails_those_who_wait_for_it(execute: Execute) -> None:
    """Everyone who waits for a load that fails is told; nobody else, not even of the same loader later."""
    request = Request(failures={"friend": 1})
    text = "{ things(n: 2) { size friend { id } a: friend { id } friends { friend { id } } } }"
    found = run(execute(text, request))
    assert found.data == {
        "things": [
            {
                "size": number * number,
                "friend": None,
                "a": None,
                "friends": [{"friend": {"id": str(number + 11)}}, {"friend": {"id": str(number + 21)}}],
            }
            for number in range(2)
        ]
    }
    assert found.errors == {
        f"things.{number}.{key}": "friend" for number in range(2) for key in ("friend", "a")
    }


def test_a_column_of_the_wrong_length_is_an_error(execute: Execute) -> None:
    """A resolver that returns no value for each source fails; nothing is left out or shifted."""
    found = run(execute('{ few none said(text: "x") }', Request()))
    assert found.data == {"few": None, "none": None, "said": "x"}
    assert found.errors.keys() == {"few", "none"}


def test_fields_of_different_places_are_resolved_apart(execute: Execute) -> None:
    """What a fragment asks for is asked apart for each place it is spread at."""
    text = "{ things(n: 2) { ...F friend { ...F } } others(n: 1) { ...F } } fragment F on Thing { origin }"
    found = run(execute(text, Request()))
    assert found.data == {
        "things": [{"origin": "things", "friend": {"origin": "friend"}}] * 2,
        "others": [{"origin": "others"}],
    }


@pytest.mark.parametrize("text", ["{ things(n: 2) { size } }", "{ things(n: 2) { size friend { id } } }"])
def test_cancellation_stops_everything(execute: Execute, text: str) -> None:
    """Whoever cancels while a load is awaited leaves no task, and no resolver that was not ended."""

    async def cancel() -> Request:
        reached = asyncio.Event()

        async def gate() -> None:
            reached.set()
            await asyncio.Event().wait()

        request, before = Request(gate=gate), asyncio.all_tasks()
        task = asyncio.ensure_future(execute(text, request))
        await reached.wait()
        task.cancel()
        await asyncio.wait({task}, timeout=WAIT / 2)
        assert task.cancelled()
        while asyncio.all_tasks() - before:  # noqa: ASYNC110 (bounded by `run`)
            await asyncio.sleep(0)
        return request

    request = run(cancel())
    assert Counter(request.closed) == Counter(["size"] + ["friend"] * ("friend" in text))
    gc.collect()  # which would to_error of a coroutine that nobody awaited, and any warning is an error


def test_the_plans_of_an_operation_are_bounded() -> None:
    """However many values its directives are given, an operation keeps few plans, and each is right."""
    flags = [f"f{number}" for number in range(6)]
    text = f"""query({", ".join(f"${flag}: Boolean!" for flag in flags)}) {{
        things(n: 1) {{ id {" ".join(f"{flag}: label @include(if: ${flag})" for flag in flags)} }}
    }}"""
    asked = operation(text)

    async def ask(number: int) -> Any:
        variables = asked.coercion.coerced({flag: bool(number >> at & 1) for at, flag in enumerate(flags)})
        (variant,) = asked.variants(variables)
        data, errors = await variant.run(variables, Request(), to_error)
        assert not errors
        return data

    for number in (*range(64), *range(64)):
        wanted = {flag: "thing 0" for at, flag in enumerate(flags) if number >> at & 1}
        assert run(ask(number)) == {"things": [{"id": "0", **wanted}]}
        assert len(asked._variants) <= 16


def test_the_variables_of_another_operation_choose_no_plan() -> None:
    """Only what an operation's own directives take decides on its plan, whatever else the document holds."""
    asked = operation("""
        query($a: String) { said(text: $a) }
        query Other($a: Boolean!) { ...F @skip(if: $a) }
        fragment F on Query { fast @skip(if: $a) }
    """)
    for value in ("x", "y", None):
        assert asked.variants(asked.coercion.coerced({"a": value}))
    assert len(asked._variants) == 1


def test_an_operation_is_compiled_when_it_is_used_again() -> None:
    """The first use takes the plan as it is, all others its compiled form; the answers are the same."""
    asked = operation("{ things(n: 2) { id label other } }")
    variables = asked.coercion.coerced({})
    (variant,) = asked.variants(variables)
    answers = []
    for uses in range(1, 4):
        answers.append(run(variant.run(variables, Request(), to_error)))
        assert (variant._compiled is not None) == (uses > 1)
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["things"][1] == {"id": "1", "label": "thing 1", "other": "another 1"}


@pytest.mark.parametrize("kind", ["ID", "String", "Int", "Boolean", "Float", "[Int]"])
@pytest.mark.parametrize("ending", ["", "!", " = null", "! = null"])
def test_variables_are_coerced_as_graphql_core_does(kind: str, ending: str) -> None:
    """Each value of a variable, or none, is taken, changed or refused just as the library does it."""
    default = {"ID": '"d"', "String": '"d"', "Int": "7", "Boolean": "true", "Float": "7", "[Int]": "7"}[kind]
    text = f"query($v: {kind}{ending.replace('null', default)}) {{ slow }}"
    (node,) = parse(text).definitions
    assert isinstance(node, OperationDefinitionNode)
    asked, definitions = operation(text), node.variable_definitions or ()
    schema = build_schema(SCHEMA)
    values: list[Any] = [
        None,
        "",
        "x",
        "7",
        0,
        7,
        -(2**31),
        2**31,
        7.0,
        7.5,
        float("inf"),
        True,
        False,
        [],
        [7],
        {},
    ]
    cases: list[dict[str, Any]] = [{}, {"other": 1}, *({"v": value} for value in values)]
    for given_values in cases:
        wanted = get_variable_values(schema, definitions, given_values)
        if isinstance(wanted, list):
            with pytest.raises(BadVariables) as bad:
                asked.coercion.coerced(given_values)
            assert [str(error) for error in bad.value.errors] == [str(error) for error in wanted]
        else:
            found = asked.coercion.coerced(given_values)
            assert repr(found.coerced) == repr(found.all.coerced) == repr(wanted.coerced)


names = st.one_of(
    st.sampled_from([*KEYS, *keyword.kwlist, *keyword.softkwlist, *dir(__builtins__)]),
    st.from_regex(r"[_A-Za-z][_0-9A-Za-z]{0,20}", fullmatch=True),
)


@given(keys=st.lists(names, min_size=4, max_size=4, unique=True), text=st.text(min_size=20))
def test_generated_code_holds_no_text_of_a_caller_but_response_keys(keys: list[str], text: str) -> None:
    """Whatever a caller calls a field, it is answered under that name, and what is compiled stays the same."""

    def source(keys: Sequence[str], text: str) -> str:
        asked = operation(document(keys, text))
        (variant,) = asked.variants(asked.coercion.coerced({}))
        return CompiledPlan(variant.plan).source

    def document(keys: Sequence[str], text: str) -> str:
        things, label, size, said = keys
        block = "".join(f"\\u{{{ord(each):x}}}" for each in text)
        return f'{{ {things}: things(n: 1) {{ {label}: label {size}: size }} {said}: said(text: "{block}") }}'

    things, label, size, said = keys
    found = run(compiled(document(keys, text), Request()))
    assert found == ({things: [{label: "thing 0", size: 0}], said: text}, {})
    plain = ["a", "b", "c", "d"]
    expected = source(plain, "")
    for letter in plain:
        expected = expected.replace(f"'{letter}': ", f"<{letter}>")
    for key, letter in zip(keys, plain, strict=True):
        expected = expected.replace(f"<{letter}>", f"{key!r}: ")
    assert source(keys, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{ __schema { queryType { name } } changes }",
        (
            "{ a: __schema { ...S } ...Q } fragment Q on Query { b: __schema { ...S } nowNOfN { name } }"
            " fragment S on __Schema { types { n: name ... { kind } } directives { locations args { defaultValue } } }"
        ),
        (
            "query($d: Boolean!, $no: Boolean!) { __schema @skip(if: $no) { description types { fields(includeDeprecated: $d)"
            " { name isDeprecated @include(if: $no) type { ofType { name } } } } } summedN }"
        ),
        (
            'query($of: String!) { a: __type(name: $of) { ...T } b: __type(name: "Either") { possibleTypes { ...T } }'
            ' c: __type(name: "Nothing") { name } } fragment T on __Type { __typename name enumValues { name } '
            "inputFields { name defaultValue type { name ofType { name } } } interfaces { name } }"
        ),
        "mutation { bumped __typename }",
        "{ nowNOfN { ... on Named { id } ... on Either { ... on Thing { name } } } }",
    ],
)
@pytest.mark.parametrize("ahead", [True, False])
def test_introspection_and_fragments_on_wider_types_are_planned(
    executors: Executors, text: str, ahead: bool
) -> None:
    """They are answered as graphql-core answers them: beside other fields, with all that a document can say."""
    for values in ({"of": "Colour", "d": True, "no": False}, {"of": "Wish", "d": False, "no": True}):
        asked = Asked(text, values, 1, 0.0)
        oracle = asyncio.run(executors.alone(asked))
        answer = asyncio.run(executors.planned(asked, compiled=ahead))
        assert answer is not None
        check(answer, oracle, oracle.errors)
        assert asyncio.run(executors.path(asked)) == "compiled"


@pytest.mark.parametrize(
    "text",
    [
        "query($v: Boolean = true) { fast @skip(if: $v) }",
        "query($v: Boolean = true) { things(n: 0) { id ...T @include(if: $v) } } fragment T on Thing { size }",
    ],
)
def test_a_directive_that_is_given_null_is_refused(text: str) -> None:
    """Null where `@skip` or `@include` takes a Boolean is a request error that names the variable."""
    asked = operation(text)
    with pytest.raises(Refused, match=r"\$v must not be null") as refused:
        asked.variants(asked.coercion.coerced({"v": None}))
    assert refused.value.errors[0]["extensions"]["code"] == "BAD_USER_INPUT"


def test_a_plan_of_very_many_fields_is_neither_compiled_nor_kept() -> None:
    """What fragments make of a short document takes no memory when it was answered, and no time to compile."""
    many = " ".join(f"a{number}: things(n: 1) {{ ...T }}" for number in range(100))
    fields = " ".join(f"b{number}: id" for number in range(30))
    asked = operation(f"{{ {many} }} fragment T on Thing {{ {fields} }}")
    variables = asked.coercion.coerced({})
    for _ in range(3):
        (variant,) = asked.variants(variables)
        variant.compile()
        data, errors = run(variant.run(variables, Request(), to_error))
        assert (len(data), data["a99"][0]["b29"], errors) == (100, "0", [])
        assert (variant._compiled, asked._variants) == (None, {})
