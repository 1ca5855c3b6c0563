"""The counts of an import."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tradepost.domain.record import camel
from tradepost.problems import MemberError, Outside, Path

_MAX_REASONS = 200
_OTHER = "other reasons"


@dataclass
class Tally:
    """How many entities were read, added, already there and rejected, and the rejected ones by reason."""

    read: int = 0
    added: int = 0
    there: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def reject(self, errors: Sequence[MemberError], fault: str | None = None) -> None:
        """Counts a rejected entity under each kind of its errors."""
        self.rejected += 1
        for reason in {_kind(error) for error in errors} or {fault or ""}:
            known = reason in self.reasons or len(self.reasons) < _MAX_REASONS
            self.reasons[reason if known else _OTHER] += 1


def described(error: MemberError) -> str:
    """An error as a line: `lineItems[0].quantity is required`."""
    return f"{_dotted(error.path)} {error.message}".strip()


def _dotted(path: Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_named(part)}" for part in path)
    return text.removeprefix(".")


def _named(part: str) -> str:
    return part if isinstance(part, Outside) else camel(part)


def _kind(error: MemberError) -> str:
    """The kind of an error, without positions in lists."""
    path = ".".join(_named(part) for part in error.path if isinstance(part, str))
    return f"{path} ({error.code})".strip()
