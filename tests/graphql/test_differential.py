"""Whatever is asked of whatever data, our executor answers what graphql-core's own does.

A failing test names the operation, which its number makes again. TRADEPOST_TEST_QUERIES asks for more of them.
"""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from graphql import parse, validate

from tests.graphql import generated
from tests.graphql.executors import Answer, Asked, Executors, Path, Told

_OPERATIONS = int(os.environ.get("TRADEPOST_TEST_QUERIES", "1200"))  # most of them asked twice
_A_TEST = 50  # operations of one test
_FAULTS = (0.0, 0.03, 0.1)

# graphql-core cancels tasks before they began, and what they were to await is then never awaited.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def executors() -> Executors:
    return Executors()


def asked(executors: Executors, numbers: Iterable[int]) -> Iterator[Asked]:
    """The operations of these numbers, with all their values, of worlds with and without faults."""
    for number in numbers:
        operation = generated.operation(executors.schema, number)
        for given in operation.given:
            yield Asked(operation.text, given, number, _FAULTS[number % len(_FAULTS)])


def nulled(data: object, path: Path) -> Path:
    """The place that is null for the error at a path: the path itself, or where it is cut off above."""
    for length, key in enumerate(path):
        if data is None:
            return path[:length]
        data = data[key]  # type: ignore[index]
    assert data is None, f"an error is told of {path}, which is {data!r}"
    return path


def by_place(answer: Answer) -> dict[Path, set[Told]]:
    """The errors, by the places that are null for them."""
    found: dict[Path, set[Told]] = {}
    for error in answer.errors:
        found.setdefault(nulled(answer.data, error.path), set()).add(error)
    return found


def check(answer: Answer, oracle: Answer, all_errors: Iterable[Told]) -> None:
    """The law of this file.

    The data are the same, keys in the same order, and the same changes were made. Errors are told for the same
    nulls. Where an error arose at the null itself, it is the same. Where a null took the place of what could
    not be without it, several errors may lie below, and which of them are told is open (specification,
    6.4.4): at least one, each once, and none that is not there.
    """
    assert answer.text == oracle.text
    assert answer.changes == oracle.changes
    ours, theirs = by_place(answer), by_place(oracle)
    assert ours.keys() == theirs.keys()
    for place, errors in ours.items():
        if any(error.path == place for error in errors | theirs[place]):
            assert errors == theirs[place]
    assert set(answer.errors) <= set(all_errors)
    paths = [error.path for error in answer.errors if error.path]
    assert len(paths) == len(set(paths))


async def compare(executors: Executors, each: Asked) -> None:
    """Holds both ways of putting an answer together to the oracle."""
    oracle = await executors.alone(each)
    all_errors = oracle.errors
    if oracle.errors:
        all_errors = (await executors.alone(each, propagating=False)).errors
    for compiled in (True, False):
        answer = await executors.planned(each, compiled=compiled)
        if answer is None:
            assert None in each.given.values(), "refused, and no directive is given null"
        else:
            check(answer, oracle, all_errors)


@pytest.mark.parametrize("first", range(0, _OPERATIONS, _A_TEST))
def test_the_executor_answers_like_graphql_core(executors: Executors, first: int) -> None:
    """Compiled or completed, introspection or not, an operation is answered as graphql-core answers it."""

    async def compare_all() -> None:
        for each in asked(executors, range(first, first + _A_TEST)):
            try:
                await compare(executors, each)
            except BaseException as error:
                error.add_note(f"{each.seed}: {each.text}\n{dict(each.given)}")
                raise

    asyncio.run(compare_all())
    gc.collect()  # here, where it is known what is left lying


def test_what_is_asked_is_valid(executors: Executors) -> None:
    """Every operation that is compared is one that validation lets through."""
    for number in range(100):
        document = parse(generated.operation(executors.schema, number).text)
        assert validate(executors.schema, document) == []


def test_most_operations_take_the_compiled_form(executors: Executors) -> None:
    """Without faults, all operations but those with a null where an argument takes none are answered so."""
    paths: Counter[str] = Counter()

    async def count() -> None:
        for each in asked(executors, range(0, 600, len(_FAULTS))):
            paths[await executors.path(each)] += 1

    asyncio.run(count())
    assert paths["compiled"] > 0.95 * paths.total(), paths
    assert paths["completed"] > 0
