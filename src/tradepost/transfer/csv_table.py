"""CSV (RFC 4180): a row per entity, or a row per line of an entity, with its rows next to each other.

The first row names the columns, with the names of the members in JSON. An empty cell is an absent member, so
CSV cannot express the difference between an empty text and none.
"""

import csv
import io
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import msgspec

from tradepost.domain.record import Mark, Member, Record, members
from tradepost.transfer.file_entity import FileEntity, RowShape
from tradepost.transfer.stream import MAX_LINE, Source, Unreadable

Cells = list[str]
Members = dict[str, Any]

LINE_ID = "lineItemId"  # the column `id` is the id of the order
_REASON = "reason"
_SEPARATORS = ",;\t"
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_MAX_REMEMBERED = 100_000  # finished entities of several rows


class _Row(NamedTuple):
    line: int
    cells: Cells
    fault: str | None = None


class Table:
    """A CSV file with a header. Raises `Unreadable` if the header does not fit the shape."""

    def __init__(self, source: Source, shape: RowShape) -> None:
        csv.field_size_limit(MAX_LINE)
        self._lines = _CsvLines(source)
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

    def __iter__(self) -> Iterator[FileEntity]:
        return self._grouped() if self._shape.line else map(self._single, self._rows())

    def rejects_writer(self, file: BinaryIO) -> "TableRejects":
        return TableRejects(file, self._header)

    def _check_header(self) -> None:
        known = {**self._own, **self._of_line, _REASON: str}
        unknown = [name for name in self._header if name not in known]
        duplicate = {name for name in self._header if self._header.count(name) > 1}
        if not self._header:
            raise Unreadable("the file is empty: the first row must name the columns")
        if unknown:
            raise Unreadable(f"unknown columns: {', '.join(unknown)}; known: {', '.join(known)}")
        if duplicate:
            raise Unreadable(f"duplicate columns: {', '.join(sorted(duplicate))}")

    def _rows(self) -> Iterator[_Row]:
        while True:
            line = self._reader.line_num + 1
            self._lines.forget()
            try:
                cells = next(self._reader, None)
                fault = self._lines.fault
            except csv.Error as error:
                cells, fault = ["".join(self._lines.taken)], f"the line is not valid CSV: {error}"
            if cells is None:
                return
            if not cells:
                continue
            if fault is None and len(cells) != len(self._header):
                fault = f"the row has {len(cells)} cells instead of {len(self._header)}"
            yield _Row(line, cells, fault)

    def _single(self, row: _Row) -> FileEntity:
        values = {} if row.fault else _members_of(self._own_at, row.cells)
        return FileEntity(row.line, values, [row.cells], row.fault)

    def _grouped(self) -> Iterator[FileEntity]:
        """Adjacent rows that name the same entity are its lines."""
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
        """What identifies a row's entity; None if nothing does."""
        if row.fault:
            return None
        named = tuple(row.cells[i] for i, name, _ in self._own_at if name in ("id", "reference"))
        return named if any(named) else None

    def _entity(self, rows: Sequence[_Row]) -> FileEntity:
        original, first = [row.cells for row in rows], rows[0]
        if first.fault:
            return FileEntity(first.line, {}, original, first.fault)
        for row in rows[1:]:
            for i, name, _ in self._own_at:
                if row.cells[i] not in ("", first.cells[i]):
                    fault = f"{name} differs from line {row.line} of the same order"
                    return FileEntity(first.line, {}, original, fault)
        values = _members_of(self._own_at, first.cells)
        values["lineItems"] = [_members_of(self._line_at, row.cells) for row in rows]
        return FileEntity(first.line, values, original)


class TableRejects:
    """Writes rejected rows unchanged, with the reason in an additional last column."""

    def __init__(self, file: BinaryIO, header: Cells) -> None:
        self._text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="", write_through=True)
        self._write = csv.writer(self._text).writerow
        self._copied = [i for i, name in enumerate(header) if name != _REASON]
        self._width = len(header)
        self._write([*(header[i] for i in self._copied), _REASON])

    def write(self, entity: FileEntity, reason: str) -> None:
        for cells in entity.original:
            wide = cells + [""] * (self._width - len(cells))
            self._write([*(wide[i] for i in self._copied), *wide[self._width :], reason])


class TableWriter:
    """Writes a header and rows; an entity with lines has a row for each."""

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


class _CsvLines:
    """The text of a file, line by line for the csv reader, and the fault of the lines last taken."""

    def __init__(self, source: Source) -> None:
        self._lines = source.lines()
        self._first: str | None = None
        self.taken: list[str] = []
        self.fault: str | None = None

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        if self._first is not None:
            text, self._first = self._first, None
            return text
        line = next(self._lines)
        if not line.whole:
            self.fault = "the line is longer than 1 MiB"
        try:
            text = line.content.decode()
        except UnicodeDecodeError:
            self.fault = "the line is not UTF-8"
            text = line.content.decode(errors="surrogateescape")
        self.taken.append(text)
        return text

    def forget(self) -> None:
        """Starts a new row and forgets the lines taken before."""
        self.taken.clear()
        self.fault = None

    def separator(self) -> str:
        """The separator of the header: a comma, or what other spreadsheets write."""
        self._first = next(self, "")
        return max(_SEPARATORS, key=self._first.count)


class _Ended:
    """The entities read last, to detect rows that are separated from the others of their entity."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, int] = OrderedDict()

    def checked(self, name: object, entity: FileEntity) -> FileEntity:
        if name is None or entity.fault:
            return entity
        before = self._known.setdefault(name, entity.line)
        if before != entity.line:
            fault = f"the row belongs to the order of line {before}: the rows of an order must be adjacent"
            return entity._replace(fault=fault)
        if len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
        return entity


def _members_of(columns: Sequence[tuple[int, str, Callable[[str], Any]]], cells: Cells) -> Members:
    return {name: convert(cells[i]) for i, name, convert in columns if cells[i]}


def _columns(record: type[Record]) -> dict[str, Callable[[str], Any]]:
    return {each.json_name: _converter(each) for each in members(record)}


def _line_columns(shape: RowShape) -> dict[str, Callable[[str], Any]]:
    """The columns of a line that its entity does not have."""
    if shape.line is None:
        return {}
    own = _columns(shape.row)
    columns = {LINE_ID if name == "id" else name: each for name, each in _columns(shape.line).items()}
    return {name: each for name, each in columns.items() if name not in own}


def _converter(member: Member) -> Callable[[str], Any]:
    if Mark.MONEY in member.marks or member.is_integer:
        return _number
    return _document if Mark.JSON in member.marks else str


def _number(cell: str) -> Any:
    """The number in a cell; otherwise the text, which the rules reject."""
    match = _NUMBER.fullmatch(cell.strip())
    if match is None:
        return cell
    return float(match[0]) if match[1] else int(match[0])


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
