"""Words in the document: names of records in different forms, numbers and durations."""

from tradepost.domain.record import Record

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven")
_UPPER = {"api": "API", "url": "URL"}


def pascal(kind: str) -> str:
    """`line_item` → `LineItem`, for names of schemas and operations."""
    return "".join(part.title() for part in kind.split("_"))


def words(kind: str) -> str:
    """`api_key` → `API key`."""
    return " ".join(_UPPER.get(part, part) for part in kind.split("_"))


def one(record: type[Record]) -> str:
    """`an order`, `a user`, with the article that fits the sound."""
    return f"{'an' if record.kind[0] in 'aeio' else 'a'} {words(record.kind)}"


def many(record: type[Record]) -> str:
    """`line items`."""
    return words(record.plural)


def heading(record: type[Record]) -> str:
    """`Line items`."""
    name = many(record)
    return name[0].upper() + name[1:]


def counted(count: float, noun: str) -> str:
    """`one second`, `five seconds`, `31 hours`, `2.5 seconds`."""
    number = _NUMBERS[int(count)] if count in range(len(_NUMBERS)) else f"{count:g}"
    return f"{number} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """`5 s`, `2 min`, `24 h`, in the largest of these units that needs no fraction."""
    hours, minutes = seconds / 3600, seconds / 60
    if seconds and hours.is_integer():
        return f"{hours:g} h"
    return f"{minutes:g} min" if seconds and minutes.is_integer() else f"{seconds:g} s"


def roughly(seconds: float) -> str:
    """`31 hours`, `two minutes`, in the largest unit that is at most half the duration."""
    for unit, length in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return counted(round(seconds / length), unit)
    return counted(seconds, "second")
