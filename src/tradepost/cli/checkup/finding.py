"""A finding: its severity, what was observed, and advice."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One line of the doctor's report."""

    level: Literal["ok", "warn", "fail"]
    text: str

    def __str__(self) -> str:
        return f"{self.level:<4}  {self.text}"


def ok(text: str) -> Finding:
    """The check passed."""
    return Finding("ok", text)


def warn(observed: str, advice: str) -> Finding:
    """The service works, but an operator should look at this."""
    return Finding("warn", f"{observed}: {advice}")


def fail(observed: str, advice: str) -> Finding:
    """The service does not work."""
    return Finding("fail", f"{observed}: {advice}")
