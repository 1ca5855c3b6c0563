"""The kinds of problems, explained: meaning, advice and an example of each."""

from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tradepost import problems
from tradepost.http.answers import status_of
from tradepost.problems import Problem
from tradepost.rest.openapi import examples

# By kind; a kind without its own has that of the kind above it.
_ADVICE: dict[str, str] = msgspec.json.decode(Path(__file__).with_name("advice.json").read_bytes())
_HEAD = """\
# Problems

Everything that can go wrong. The `type` in `application/problem+json` is the URL of the service, `/problems/`
and the kind.
"""


class ExplainedProblem(NamedTuple):
    """A kind of problem, explained to people who met it."""

    type: str
    kind: str
    title: str
    status: int
    phrase: str
    description: str
    advice: str
    example: dict[str, Any]


def explained(base_url: str) -> list[ExplainedProblem]:
    """All kinds, in the order of `problems.py`."""
    return [_explained(kind, base_url) for kind in problems.kinds()]


def _explained(kind: type[Problem], base_url: str) -> ExplainedProblem:
    kinds = [getattr(each, "kind", "default") for each in kind.__mro__]
    return ExplainedProblem(
        type=f"{base_url}/problems/{kind.kind}",
        kind=kind.kind,
        title=kind.title,
        status=status_of(kind),
        phrase=HTTPStatus(status_of(kind)).phrase,
        description=" ".join((kind.__doc__ or "").split()),
        advice=next(_ADVICE[each] for each in kinds if each in _ADVICE),
        example=examples.problem(kind, base_url),
    )


def markdown(base_url: str) -> str:
    """All kinds as a page of Markdown, which is a committed contract."""
    kinds = explained(base_url)
    rows = [f"| [`{each.kind}`](#{each.kind}) | {each.status} | {each.title} |" for each in kinds]
    table = "\n".join(["| Kind | Status | Title |", "|---|---|---|", *rows])
    parts = [
        f"## {each.kind}\n\n{each.status} · {each.title}\n\n{each.description}\n\n{each.advice}\n"
        for each in kinds
    ]
    return f"{_HEAD}\n{table}\n\n" + "\n".join(parts)
