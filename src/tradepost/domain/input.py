"""Request bodies: decoded into a struct that is derived from the record, or checked member by member.

msgspec decodes a valid body in one pass. A body that it rejects is parsed again as plain JSON, and each
member is checked on its own, so that one answer names every error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct

from tradepost.domain.expected import code_of, expected, kind_of
from tradepost.domain.money import DECIMALS, MAX_PRICE, UNITS, NotMoney, to_units
from tradepost.domain.record import Mark, Member, Record, camel, items_of, members
from tradepost.problems import Invalid, Malformed, MemberError, Outside, Path

Values = dict[str, Any]

_Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
_MAX_DEPTH = 64
_NUL = b"\\u0000"


class Input:
    """The members that a body for a record may have.

    `names` are the external names of the members, `child_names` those of the embedded children. Four groups
    of members are ignored: read-only ones; `fixed` ones, whose values come from the path; `revealed` ones,
    which are the secrets in the answer that created the record; and, unless `patching`, those that only PATCH
    takes.
    """

    def __init__(
        self,
        record: type[Record],
        names: Mapping[str, str],
        fixed: frozenset[str] = frozenset(),
        child_names: Mapping[str, str] | None = None,
        revealed: Iterable[str] = (),
        *,
        patching: bool = False,
    ) -> None:
        self.record = record
        self.names = names
        self.taken = [
            each
            for each in members(record)
            if not each.read_only and each.name not in fixed and (patching or Mark.PATCHED not in each.marks)
        ]
        self.embedded = record.embedded
        self.child = _child_input(record, child_names)
        self.revealed = tuple(revealed)
        self._outside = {outside: inside for inside, outside in names.items()}
        self._outside |= {name: name for name in self.revealed}
        self._required = [each.name for each in self.taken if each.required]
        self._checked = [(each.name, each.check) for each in self.taken if each.check]
        self._money = [each.name for each in self.taken if Mark.MONEY in each.marks]
        self._types = {each.name: _type(each) for each in self.taken}
        if self.child and self.embedded:
            child: Any = self.child.struct
            self._types[self.embedded.name] = Annotated[
                list[child], Meta(min_length=1, max_length=self.embedded.at_most)
            ]
            self._required.append(self.embedded.name)
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
        """The external names of the members that are not ignored."""
        return frozenset(self.names[name] for name in self._types)

    @property
    def requires_nothing(self) -> bool:
        """Whether a body may be empty."""
        return not self._required

    def read(self, body: bytes) -> Values:
        """The values of a body, by internal names.

        Raises `Malformed` if it is not a JSON object, `Invalid` with every bad member.
        """
        try:
            decoded = self._decode(body)
        except msgspec.ValidationError:
            return self.check(parse_object(body))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _unreadable(error) from None
        values = {name: getattr(decoded, name) for name in self._types}
        if _NUL in body or self._wrong(values):
            return self.check(parse_object(body))
        return values

    def check(self, body: Mapping[str, Any]) -> Values:
        """The values of a parsed body, by internal names. Raises `Invalid` with every bad member."""
        values, errors = self._members(body, ())
        errors.extend(self._wrong(values))
        if errors:
            raise Invalid.of(errors, values=values)
        return values

    @property
    def defaults(self) -> Values:
        """The values of the members that a body may leave out."""
        return {name: self._default(name) for name in self._types if name not in self._required}

    def body_of(self, item: Record) -> dict[str, Any]:
        """The body that leaves the record's own members as they are."""
        return {
            self.names[each.name]: getattr(item, each.name) / UNITS
            if Mark.MONEY in each.marks
            else getattr(item, each.name)
            for each in self.taken
        }

    def _members(self, body: Mapping[str, Any], at: Path) -> tuple[Values, list[MemberError]]:
        values: Values = {}
        errors: list[MemberError] = []
        for outside, value in body.items():
            name = self._outside.get(outside)
            if name is None:
                errors.append(MemberError((*at, Outside(outside)), "is not a member; remove it", "unknown"))
            elif self.child and self.embedded and name == self.embedded.name:
                values[name] = self._children(self.child, value, (*at, name), errors)
            elif name in self._types:
                self._member(name, value, (*at, name), values, errors)
        for name in self._types:
            if self.names[name] not in body:
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

    def _children(self, child: "Input", value: Any, at: Path, errors: list[MemberError]) -> list[Any]:
        """The children in a list, each checked on its own; a member that cannot be read is None."""
        wrong = next(_faults(value, self._types[str(at[-1])], at, items=False), None)
        if wrong:
            errors.append(wrong)
            return []
        return [child._child(item, (*at, index), errors) for index, item in enumerate(value)]  # noqa: SLF001

    def _child(self, item: Any, at: Path, errors: list[MemberError]) -> Struct:
        absent = dict.fromkeys(self._required)
        if not isinstance(item, dict):
            errors.append(MemberError(at, "must be an object", "type"))
            return self.struct(**absent)
        values, wrong = self._members(item, at)
        errors.extend(wrong)
        return self.struct(**{"id": item.get("id", UNSET), **absent, **values})

    def _wrong(self, values: Values) -> list[MemberError]:
        """Checks the rules beyond the types, and converts money to integers."""
        errors = []
        for name, check in self._checked:
            message = check(values[name]) if values.get(name) is not None else None
            if message:
                errors.append(MemberError((name,), message, "invalid"))
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
        """The default in the form that a struct takes."""
        default = self._default(name)
        return msgspec.field(default_factory=default.copy) if isinstance(default, list) else default


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. Raises `Malformed` for anything else."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _unreadable(error) from None
    if not isinstance(parsed, dict):
        message = f"The body must be a JSON object, not {kind_of(parsed)}"
        raise Malformed(message)
    _check_depth(parsed)
    return parsed


def peek(body: bytes) -> dict[str, Any]:
    """The members of a body that has not been checked; empty if it is not a JSON object."""
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _check_depth(body: Any) -> None:
    """Raises `Malformed` for deep nesting, so that code which walks a body may recurse."""
    level: list[Any] = [body]
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
    """The JSON names of a record's members by their internal names, with its embedded children."""
    names = {each.name: each.json_name for each in members(record)}
    if record.embedded:
        names[record.embedded.name] = camel(record.embedded.name)
    return names


def _child_input(record: type[Record], names: Mapping[str, str] | None) -> Input | None:
    if record.embedded is None:
        return None
    child = record.embedded.child
    return Input(child, names or names_of(child), frozenset({record.embedded.key}))


def _type(member: Member) -> Any:
    return _Amount if Mark.MONEY in member.marks else member.type


def _to_units(values: Values, name: str, currency: str) -> Iterator[MemberError]:
    if values[name] > MAX_PRICE // UNITS:  # also infinity, which a GraphQL literal can be
        yield MemberError((name,), f"must be at most {MAX_PRICE // UNITS}", "out_of_range")
        return
    try:
        values[name] = to_units(values[name], currency)
    except NotMoney as error:
        yield MemberError((name,), str(error), "too_many_decimals")


def _faults(value: Any, kind: Any, at: Path, *, items: bool = True) -> Iterator[MemberError]:
    """The error of a value as a whole; without one, the errors of each item of a list."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, _, below = str(error).partition(" - at `$")
        if not (isinstance(value, list) and below.startswith("[")):
            yield MemberError(at, f"must be {expected(kind)}", code_of(message))
            return
    if isinstance(value, list) and items:
        item_kind = items_of(kind)
        for index, item in enumerate(value):
            yield from _faults(item, item_kind, (*at, index))
    elif isinstance(value, str) and "\x00" in value:  # no database is asked about it
        yield MemberError(at, "must not contain a NUL character", "invalid")


def _unreadable(error: Exception) -> Malformed:
    if isinstance(error, RecursionError):
        return Malformed("The body is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return Malformed("The body is not JSON: it is not UTF-8")
    reason, _, _ = str(error).removeprefix("JSON is malformed: ").partition(" - at `")
    return Malformed(f"The body is not JSON: {reason}")
