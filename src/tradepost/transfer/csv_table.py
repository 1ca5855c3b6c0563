"""CSV (RFC 4180): one row an entity, or a row for each of its lines, those of one entity one after another.

Columns are named in the first row, as members are in JSON. An empty cell is a member that is not there. What
is written has no way to tell an empty text from none.
"""

import csv
import io
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import msgspec

from tradepost.domain.record import Mark, Member, Record, members
from tradepost.transfer.given import Given, Shape
from tradepost.transfer.stream import MAX_LINE, Source, Unreadable

Cells = list[str]
Members = dict[str, Any]

LINE_ID = "lineItemId"  # `id` is the order's
_REASON = "reason"
_SEPARATORS = ",;\t"
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_REMEMBERED = 100_000  # entities of several rows that are known to have ended


class _Row(NamedTuple):
    line: int
    cells: Cells
    fault: str | None = None


class Table:
    """A file of rows under a header. Raises `Unreadable` where the header is not of this shape."""

    def __init__(self, source: Source, shape: Shape) -> None:
        csv.field_size_limit(MAX_LINE)
        self._lines = _Lines(source)
        self._shape = shape
        self._reader = csv.reader(self._lines, delimiter=self._lines.separator())
        self._header = [name.strip() for name in next(self._reader, [])]
        self._own = _columns(shape.row)
        self._of_line = _line_columns(shape)
        self._check_header()
        names = list(enumerate(self._header))
        self._own_at = [(i, name, self._own[name]) for i, name in names if name in self._own]
        self._line_at = [
            (i, "id" if name == LINE_ID else name, self._of_line[name])
            for i, name in names
            if name in self._of_line
        ]

    def __iter__(self) -> Iterator[Given]:
        return self._grouped() if self._shape.line else map(self._single, self._rows())

    def aside(self, file: BinaryIO) -> "TableAside":
        return TableAside(file, self._header)

    def _check_header(self) -> None:
        taken = {**self._own, **self._of_line, _REASON: str}
        unknown = [name for name in self._header if name not in taken]
        doubled = {name for name in self._header if self._header.count(name) > 1}
        if not self._header:
            raise Unreadable("is empty: the first row has to name the columns")
        if unknown or doubled:
            what = f"no column {', '.join(unknown)}" if unknown else f"{', '.join(sorted(doubled))} only once"
            raise Unreadable(f"is not of this kind: there is {what}; there are {', '.join(taken)}")

    def _rows(self) -> Iterator[_Row]:
        while True:
            began = self._reader.line_num + 1
            self._lines.forget()
            try:
                cells = next(self._reader, None)
                fault = self._lines.fault
            except csv.Error as error:
                cells, fault = ["".join(self._lines.taken)], f"is no CSV: {error}"
            if cells is None:
                return
            if not cells:
                continue
            if fault is None and len(cells) != len(self._header):
                fault = f"has {len(cells)} cells where the header has {len(self._header)}"
            yield _Row(began, cells, fault)

    def _single(self, row: _Row) -> Given:
        found = {} if row.fault else _members_of(self._own_at, row.cells)
        return Given(row.line, found, [row.cells], row.fault)

    def _grouped(self) -> Iterator[Given]:
        """Rows that stand together and name the same entity are its lines."""
        ended = _Ended()
        rows: list[_Row] = []
        name: object = None
        for row in self._rows():
            its_name = self._name(row)
            if rows and (its_name is None or its_name != name):
                yield ended.checked(name, self._entity(rows))
                rows = []
            rows.append(row)
            name = its_name
        if rows:
            yield ended.checked(name, self._entity(rows))

    def _name(self, row: _Row) -> tuple[str, ...] | None:
        """What a row calls its entity; None where it does not say."""
        if row.fault:
            return None
        named = tuple(row.cells[i] for i, name, _ in self._own_at if name in ("id", "reference"))
        return named if any(named) else None

    def _entity(self, rows: Sequence[_Row]) -> Given:
        kept, first = [row.cells for row in rows], rows[0]
        if first.fault:
            return Given(first.line, {}, kept, first.fault)
        for row in rows[1:]:
            for i, name, _ in self._own_at:
                if row.cells[i] not in ("", first.cells[i]):
                    fault = f"differs in {name} from line {row.line}, which is of the same order"
                    return Given(first.line, {}, kept, fault)
        found = _members_of(self._own_at, first.cells)
        found["lineItems"] = [_members_of(self._line_at, row.cells) for row in rows]
        return Given(first.line, found, kept)


class TableAside:
    """Rejected rows, as they stood but for the reason in a last column."""

    def __init__(self, file: BinaryIO, header: Cells) -> None:
        self._text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="", write_through=True)
        self._write = csv.writer(self._text).writerow
        self._kept = [i for i, name in enumerate(header) if name != _REASON]
        self._width = len(header)
        self._write([*(header[i] for i in self._kept), _REASON])

    def keep(self, given: Given, reason: str) -> None:
        for cells in given.kept:
            wide = cells + [""] * (self._width - len(cells))
            self._write([*(wide[i] for i in self._kept), *wide[self._width :], reason])


class TableWriter:
    """Rows under a header; an entity that has lines takes a row for each."""

    def __init__(self, file: BinaryIO, columns: Sequence[str], line_columns: Sequence[str] = ()) -> None:
        self._file = file
        self._columns = columns
        self._line_names = ["id" if name == LINE_ID else name for name in line_columns]
        self._flush([[*columns, *line_columns]])

    def write(self, entities: Iterable[Mapping[str, Any]]) -> None:
        rows: list[list[str]] = []
        for entity in entities:
            own = [_cell(entity.get(name)) for name in self._columns]
            if self._line_names:
                rows += [
                    own + [_cell(line.get(name)) for name in self._line_names] for line in entity["lineItems"]
                ]
            else:
                rows.append(own)
        self._flush(rows)

    def _flush(self, rows: Iterable[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        self._file.write(text.getvalue().encode())


class _Lines:
    """The text of a file, line by line for the csv reader, and what was wrong with the lines last taken."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._first: str | None = None
        self.taken: list[str] = []
        self.fault: str | None = None

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if self._first is not None:
            text, self._first = self._first, None
            return text
        line = next(self._lines)
        if not line.whole:
            self.fault = "is longer than 1 MiB"
        try:
            text = line.content.decode()
        except UnicodeDecodeError:
            self.fault = "is not UTF-8"
            text = line.content.decode(errors="surrogateescape")
        self.taken.append(text)
        return text

    def forget(self) -> None:
        """Begins a row anew: what was taken before is done with."""
        self.taken.clear()
        self.fault = None

    def separator(self) -> str:
        """What separates the columns of the header: a comma, or what European spreadsheets write."""
        self._first = next(self, "")
        return max(_SEPARATORS, key=self._first.count)


class _Ended:
    """The entities whose rows were read lately: more rows of one of them stand in the wrong place."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, int] = OrderedDict()

    def checked(self, name: object, given: Given) -> Given:
        if name is None or given.fault:
            return given
        before = self._known.setdefault(name, given.line)
        if before != given.line:
            fault = f"belongs to the order of line {before}: the rows of an order have to stand together"
            return given._replace(fault=fault)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return given


def _members_of(columns: Sequence[tuple[int, str, Callable[[str], Any]]], cells: Cells) -> Members:
    return {name: convert(cells[i]) for i, name, convert in columns if cells[i]}


def _columns(record: type[Record]) -> dict[str, Callable[[str], Any]]:
    return {each.json_name: _converter(each) for each in members(record)}


def _line_columns(shape: Shape) -> dict[str, Callable[[str], Any]]:
    """The columns of a line, under names that its entity does not have."""
    if shape.line is None:
        return {}
    own = _columns(shape.row)
    found = {LINE_ID if name == "id" else name: each for name, each in _columns(shape.line).items()}
    return {name: each for name, each in found.items() if name not in own}


def _converter(member: Member) -> Callable[[str], Any]:
    if Mark.MONEY in member.marks or member.is_integer:
        return _number
    return _document if Mark.JSON in member.marks else str


def _number(cell: str) -> Any:
    """A number where it is one; else the text, for the rules to refuse."""
    found = _NUMBER.fullmatch(cell.strip())
    if found is None:
        return cell
    return float(found[0]) if found[1] else int(found[0])


def _document(cell: str) -> Any:
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cell


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else msgspec.json.encode(value).decode()
