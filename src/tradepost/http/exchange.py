"""An exchange: the answer to a request, and what the way to it has found out for the log and the headers."""

import logging
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from tradepost.http.access_control import Admission
from tradepost.http.answers import Answer, problem_answer
from tradepost.http.request import Disconnected, Request
from tradepost.problems import Internal, Problem

_log = logging.getLogger("tradepost.http")


class Exchange(Struct, frozen=True):
    """`route` is the template of the path, `admission` the outcome of access control if it got so far."""

    answer: Answer
    route: str
    admission: Admission | None = None


Handler = Callable[[Request], Awaitable[Exchange]]


def failure_answer(
    failure: Exception, request: Request, names: Mapping[str | tuple[str, str], str] | None = None
) -> Answer:
    """The answer to a request that failed; `names` are the members' names in its version.

    An unexpected failure is logged with the request's id, and the client learns no more than that. Raises
    `Disconnected` again.
    """
    return problem_answer(expected_problem(failure, request), request, names)


def expected_problem(failure: Exception, request: Request) -> Problem:
    """The problem that a failure is; `Internal` for an unexpected one, which is logged."""
    if isinstance(failure, Disconnected):
        raise failure
    if isinstance(failure, Problem):
        return failure
    extra = {"request_id": request.id, "path": request.path}
    _log.error("unexpected failure", exc_info=failure, extra=extra)
    return Internal("The failure was logged under this request's id")
