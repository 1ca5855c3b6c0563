"""The source: each row is read as an order line, or rejected for one reason, the first that fits."""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from typing import NamedTuple, TextIO

from . import money
from .users import User, buyer

HEADER = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"
MAX_QUANTITY = 10_000
MAX_NAME = 200
MAX_SKU = 64
MAX_INVOICE = 190  # leaves room for the `/2` of a part in the 200 characters of a reference


class SourceError(Exception):
    """The source cannot be read to its end, or is another file."""

    def __init__(self, source: Path, what: str) -> None:
        super().__init__(f"{source}: {what}")


class Rejection(Enum):
    """Why a row is no order line. A row that several fit has the first."""

    CANCELLATION = "cancellation", "the invoice number starts with C: goods returned or never sent"
    ADJUSTMENT = "adjustment", "the invoice number starts with A: a booking of bad debt"
    UNREADABLE = "unreadable", "not eight columns, or a number, date, code or customer that cannot be read"
    FRACTION = "fraction of a penny", "a unit price with more than two decimals"
    NO_QUANTITY = "quantity not above 0", "stock written off, not sold: damaged, lost, counted again"
    TOO_MANY = "quantity above 10,000", "more than one line of an order may hold"
    NEGATIVE_PRICE = "negative price", "money given back, not taken"

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason


class Line(NamedTuple):
    invoice: str
    code: str
    description: str
    quantity: int
    placed_at: str
    buyer: User
    pence: int


@dataclass(slots=True)
class Rejected:
    """How many rows, and the exact sum of quantity by price that went with them (0 where unreadable)."""

    rows: int = 0
    pounds: Decimal = Decimal("0.00")


@dataclass(slots=True)
class Reading:
    """All rows of the source: kept as lines, or counted by reason and by invoice."""

    lines: list[Line] = field(default_factory=list)
    rejected: dict[Rejection, Rejected] = field(
        default_factory=lambda: {kind: Rejected() for kind in Rejection}
    )
    reasons_by_invoice: dict[str, set[Rejection]] = field(default_factory=dict)
    rows: int = 0

    def reject(self, row: list[str], rejection: Rejection) -> None:
        self.rejected[rejection].rows += 1
        self.rejected[rejection].pounds += value(row)
        self.reasons_by_invoice.setdefault(row[0].strip() if row else "", set()).add(rejection)


def read(rows: Iterable[list[str]]) -> Reading:
    reading = Reading()
    for row in rows:
        reading.rows += 1
        line = read_line(row)
        if isinstance(line, Line):
            reading.lines.append(line)
        else:
            reading.reject(row, line)
    return reading


def rows_of(source: Path) -> Iterator[list[str]]:
    """The rows below the header of a CSV file, gzipped or plain. Raises SourceError."""
    try:
        with opened(source) as file:
            rows = csv.reader(file)
            if (header := ",".join(next(rows, []))) != HEADER:
                raise SourceError(source, f"not the Online Retail file, its columns are {header!r}")
            yield from rows
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
        raise SourceError(source, str(error)) from error


def opened(source: Path) -> TextIO:
    if source.suffix == ".gz":
        return gzip.open(source, "rt", encoding="utf-8-sig", newline="")
    return source.open(encoding="utf-8-sig", newline="")


def read_line(row: list[str]) -> Line | Rejection:
    if row and row[0].startswith("C"):
        return Rejection.CANCELLATION
    if row and row[0].startswith("A"):
        return Rejection.ADJUSTMENT
    try:
        line = parsed(row)
    except money.FractionOfPennyError:
        return Rejection.FRACTION
    except ValueError:
        return Rejection.UNREADABLE
    return out_of_bounds(line) or line


def parsed(row: list[str]) -> Line:
    invoice, code, description, quantity, placed_at, price, customer, country = row
    return Line(
        code_within(invoice, MAX_INVOICE),
        code_within(code, MAX_SKU),
        text(description),
        int(quantity),
        utc(placed_at),
        buyer(customer, country),
        price_in_pence(price),  # last: a price may fail as a fraction only where nothing else is unreadable
    )


def value(row: list[str]) -> Decimal:
    try:
        return int(row[3]) * money.exact(row[5])
    except (IndexError, ValueError):
        return Decimal(0)


def out_of_bounds(line: Line) -> Rejection | None:
    if line.quantity <= 0:
        return Rejection.NO_QUANTITY
    if line.quantity > MAX_QUANTITY:
        return Rejection.TOO_MANY
    return Rejection.NEGATIVE_PRICE if line.pence < 0 else None


# A few thousand texts make up half a million rows: each is read once, and kept in memory once.
price_in_pence = cache(money.pence)


@cache
def text(description: str) -> str:
    return description.strip()[:MAX_NAME]


@cache
def code_within(code: str, longest: int) -> str:
    if not 0 < len(code := code.strip()) <= longest:
        message = f"not 1 to {longest} characters: {code!r}"
        raise ValueError(message)
    return code


@cache
def utc(moment: str) -> str:
    """`2010-12-01 08:26:00` as `2010-12-01T08:26:00.000Z`: the file names no zone, and UTC is assumed."""
    return datetime.fromisoformat(f"{moment}+00:00").isoformat(timespec="milliseconds").replace("+00:00", "Z")
