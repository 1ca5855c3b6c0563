"""A finding: how serious, what was seen, and what to do about it."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One line of the doctor's report."""

    level: Literal["ok", "warn", "fail"]
    text: str

    def __str__(self) -> str:
        return f"{self.level:<4}  {self.text}"


def ok(text: str) -> Finding:
    """All is well."""
    return Finding("ok", text)


def warn(seen: str, advice: str) -> Finding:
    """It works, but somebody should look."""
    return Finding("warn", f"{seen}: {advice}")


def fail(seen: str, advice: str) -> Finding:
    """It does not work."""
    return Finding("fail", f"{seen}: {advice}")
