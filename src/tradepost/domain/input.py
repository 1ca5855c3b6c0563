"""Bodies: read straight into what a record takes; if that fails, member by member, to tell all that is wrong.

The first way is msgspec decoding into a struct derived from the record. Only if it refuses is the body read
again as plain JSON and each member judged alone, so that one answer names every bad one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct

from tradepost.domain.money import DECIMALS, MAX_PRICE, UNITS, NotMoney, to_units
from tradepost.domain.order import MAX_LINES
from tradepost.domain.record import Mark, Member, Record, embedded_child, items_of, members, values_of
from tradepost.problems import Invalid, Malformed, MemberError, Outside, Path

Values = dict[str, Any]

_Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
_MAX_DEPTH = 64
_NUL = b"\\u0000"
_CODES = (
    (re.compile(r"^Expected `(?:str|array|object)` of length"), "length"),
    (re.compile(r"^Expected `(?:int|float|int \| float)` [<>]"), "out_of_range"),
    (re.compile(r"^Invalid enum value"), "unknown_value"),
)


class Input:
    """What a body for a record may say.

    `names` are the members' names outside, `child_names` those of embedded children; `fixed` members come
    from elsewhere (the path) and are ignored, as read-only ones are, and `revealed` ones: secrets that stood
    beside the record in the answer that made it.
    """

    def __init__(
        self,
        record: type[Record],
        names: Mapping[str, str],
        fixed: frozenset[str] = frozenset(),
        child_names: Mapping[str, str] | None = None,
        revealed: Iterable[str] = (),
    ) -> None:
        self.record = record
        self.names = names
        self.taken = [each for each in members(record) if not each.read_only and each.name not in fixed]
        self.child = _child_input(record, child_names)
        self.revealed = tuple(revealed)
        self._outside = {outside: inside for inside, outside in names.items()}
        self._outside |= {name: name for name in self.revealed}
        self._required = [each.name for each in self.taken if each.required]
        self._checked = [(each.name, each.check) for each in self.taken if each.check]
        self._money = [each.name for each in self.taken if Mark.MONEY in each.marks]
        self._types = {each.name: _type(each) for each in self.taken}
        if self.child:
            child: Any = self.child.struct
            self._types["line_items"] = Annotated[list[child], Meta(min_length=1, max_length=MAX_LINES)]
            self._required.append("line_items")
        ignored = [name for name in (*names, *self.revealed) if name not in self._types]
        self.struct: type[Struct] = msgspec.defstruct(
            record.__name__,
            [
                *[(name, kind, self._field(name)) for name, kind in self._types.items()],
                *[(name, Any, UNSET) for name in ignored],
            ],
            rename=dict(names),
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
        )
        self._decode = msgspec.json.Decoder(self.struct).decode

    @property
    def takes(self) -> frozenset[str]:
        """The names outside of what a body may say and is not ignored."""
        return frozenset(self.names[name] for name in self._types)

    @property
    def requires_nothing(self) -> bool:
        """Whether a body need not say anything."""
        return not self._required

    def read(self, body: bytes) -> Values:
        """The values of a body; `Malformed` if it is no JSON object, `Invalid` with all that is wrong."""
        try:
            given = self._decode(body)
        except msgspec.ValidationError:
            return self.check(parse_object(body))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _unreadable(error) from None
        values = {name: getattr(given, name) for name in self._types}
        if _NUL in body or self._wrong(values):
            return self.check(parse_object(body))
        return values

    def check(self, given: Mapping[str, Any]) -> Values:
        """The values of a JSON object that was read already; raises `Invalid` with all that is wrong."""
        values, errors = self._members(given, ())
        errors.extend(self._wrong(values))
        if errors:
            raise Invalid.of(errors, values=values)
        return values

    def said(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a body could say to leave the record's own members as they are."""
        return {
            self.names[each.name]: values[each.name] / UNITS
            if Mark.MONEY in each.marks
            else values[each.name]
            for each in self.taken
        }

    def _members(self, given: Mapping[str, Any], at: Path) -> tuple[Values, list[MemberError]]:
        values: Values = {}
        errors: list[MemberError] = []
        for outside, value in given.items():
            name = self._outside.get(outside)
            if name is None:
                errors.append(MemberError((*at, Outside(outside)), "is not a member; remove it", "unknown"))
            elif name == "line_items" and self.child:
                values[name] = self.child.each(value, (*at, name), errors)
            elif name in self._types:
                self._member(name, value, (*at, name), values, errors)
        for name in self._types:
            if self.names[name] not in given:
                if name in self._required:
                    errors.append(MemberError((*at, name), "is required", "required"))
                else:
                    values[name] = self._default(name)
        return values, errors

    def _member(self, name: str, value: Any, at: Path, values: Values, errors: list[MemberError]) -> None:
        wrong = list(_faults(value, self._types[name], at))
        if not wrong:
            values[name] = msgspec.convert(value, self._types[name])
        errors.extend(wrong)

    def each(self, value: Any, at: Path, errors: list[MemberError]) -> list[Any]:
        """The children of a list, each judged by this input; what could not be read of one is None."""
        if not isinstance(value, list):
            errors.append(MemberError(at, f"Expected `array`, got `{_kind(value)}`", "type"))
            return []
        if not 1 <= len(value) <= MAX_LINES:
            errors.append(MemberError(at, f"has to hold 1 to {MAX_LINES} items", "length"))
            return []
        found: list[Any] = []
        for index, item in enumerate(value):
            if isinstance(item, dict):
                values, wrong = self._members(item, (*at, index))
                errors.extend(wrong)
                absent = dict.fromkeys(self._required)
                found.append(self.struct(**{"id": item.get("id", UNSET), **absent, **values}))
            else:
                found.append(self.struct(**dict.fromkeys(self._required)))
                errors.append(MemberError((*at, index), f"Expected `object`, got `{_kind(item)}`", "type"))
        return found

    def _wrong(self, values: Values) -> list[MemberError]:
        """What breaks a rule beyond the types; money becomes an integer here."""
        errors = []
        for name, check in self._checked:
            said = check(values[name]) if values.get(name) is not None else None
            if said:
                errors.append(MemberError((name,), said, "invalid"))
        for name in self._money:
            currency = values.get("currency")
            if currency in DECIMALS and isinstance(values.get(name), int | float):
                errors.extend(_to_units(values, name, currency))
        return errors

    def _default(self, name: str) -> Any:
        if name in self._required:
            return NODEFAULT
        return next(each.default for each in self.taken if each.name == name)

    def _field(self, name: str) -> Any:
        """The default as a struct takes it."""
        default = self._default(name)
        return msgspec.field(default_factory=default.copy) if isinstance(default, list) else default


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object; raises `Malformed` for anything else."""
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _unreadable(error) from None
    if not isinstance(given, dict):
        message = f"The body has to be a JSON object, not {_kind(given)}"
        raise Malformed(message)
    _check_depth(given)
    return given


def glance(body: bytes) -> dict[str, Any]:
    """What a body holds, before it is judged; nothing if it is no JSON object."""
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return given if isinstance(given, dict) else {}


def _check_depth(given: Any) -> None:
    """No body that makes sense is nested deeply; whatever walks one later may recurse."""
    level: list[Any] = [given]
    for _ in range(_MAX_DEPTH):
        level = [
            below
            for value in level
            if isinstance(value, dict | list)
            for below in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise _unreadable(RecursionError())


def names_of(record: type[Record]) -> dict[str, str]:
    """The names of a record's members as JSON has them, its embedded children included."""
    names = {each.name: each.json_name for each in members(record)}
    if embedded_child(record):
        names["line_items"] = "lineItems"
    return names


def _child_input(record: type[Record], names: Mapping[str, str] | None) -> Input | None:
    found = embedded_child(record)
    if found is None:
        return None
    child, key = found
    return Input(child, names or names_of(child), frozenset({key}))


def _type(member: Member) -> Any:
    return _Amount if Mark.MONEY in member.marks else member.type


def _to_units(values: Values, name: str, currency: str) -> Iterator[MemberError]:
    if values[name] > MAX_PRICE // UNITS:  # infinity too, which a GraphQL literal can be
        yield MemberError((name,), f"is above {MAX_PRICE // UNITS}", "out_of_range")
        return
    try:
        values[name] = to_units(values[name], currency)
    except NotMoney as error:
        yield MemberError((name,), str(error), "too_many_decimals")


def _faults(value: Any, kind: Any, at: Path) -> Iterator[MemberError]:
    """What is wrong with a value: as a whole, or else with each item of a list."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, below = str(error).partition(" - at `$")
        if not (isinstance(value, list) and below.startswith("[")):
            yield _said(message, kind, at)
            return
    if isinstance(value, list):
        item_kind = items_of(kind)
        for index, item in enumerate(value):
            yield from _faults(item, item_kind, (*at, index))
    elif isinstance(value, str) and "\x00" in value:  # no database is asked about it
        yield MemberError(at, "contains a NUL character; remove it", "invalid")


def _said(message: str, kind: Any, at: Path) -> MemberError:
    code = next((code for pattern, code in _CODES if pattern.match(message)), "type")
    if code == "unknown_value":
        message = f"is none of {', '.join(values_of(kind))}"
    return MemberError(at, message, code)


def _unreadable(error: Exception) -> Malformed:
    if isinstance(error, RecursionError):
        return Malformed("The body is nested too deeply")
    return Malformed(f"The body is not JSON: {error}")


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "str", bool: "bool", int: "int", float: "float"}
    return kinds.get(type(value), "null")
