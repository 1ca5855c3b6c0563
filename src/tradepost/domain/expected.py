"""The value that a member expects, in terms of JSON: "a string of 1 to 200 characters".

msgspec checks the types; its own messages name Python types and are never shown.
"""

import re
from functools import cache
from typing import Any

from msgspec import inspect
from msgspec.inspect import Type

from tradepost.domain.record import values_of

_CODES = (
    (re.compile(r"^Expected `(?:str|array|object)` of length"), "length"),
    (re.compile(r"^Expected `(?:int|float|int \| float)` [<>]"), "out_of_range"),
    (re.compile(r"^Invalid enum value"), "unknown_value"),
)


def code_of(message: str) -> str:
    """The stable code of one of msgspec's messages."""
    return next((code for pattern, code in _CODES if pattern.match(message)), "type")


@cache
def expected(kind: Any) -> str:
    """The values that a type accepts: a kind of JSON value and its limits."""
    values = values_of(kind)  # in the order of declaration, which msgspec loses
    return f"one of {', '.join(values)}" if values else _words(inspect.type_info(kind))


def kind_of(value: Any) -> str:
    """The kind of a JSON value."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _words(info: Type) -> str:  # noqa: PLR0911 (a table)
    match info:
        case inspect.Metadata():
            return _words(info.type)
        case inspect.UnionType():
            words = dict.fromkeys(_words(each) for each in info.types)
            return " or ".join(sorted(_without_integers(list(words)), key="null".__eq__))
        case inspect.StrType():
            return "a string" + _bounds(info.min_length, info.max_length, " of {} characters")
        case inspect.IntType():
            return "an integer" + _bounds(info.ge, info.le, " from {}", " to ")
        case inspect.FloatType():
            return "a number" + _bounds(info.ge, info.le, " from {}", " to ")
        case inspect.ListType():
            return "an array" + _bounds(info.min_length, info.max_length, " of {} items")
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, info.values))}"
        case inspect.BoolType():
            return "a boolean"
        case inspect.NoneType():
            return "null"
    return "an object"


def _without_integers(words: list[str]) -> list[str]:
    """Drops "an integer" where "a number" with the same limits is there too."""
    numbers = [each for each in words if each.startswith("a number")]
    return [
        each for each in words if each.replace("an integer", "a number") not in numbers or each in numbers
    ]


def _bounds(least: float | None, most: float | None, form: str, between: str = " to ") -> str:
    if least is not None and most is not None:
        return form.format(f"{least}{between}{most}")
    if least is None and most is None:
        return ""
    return form.replace("from {}", "of {}").format(f"at least {least}" if most is None else f"at most {most}")
