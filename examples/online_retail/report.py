"""What became of every row of the source, as report.json for `check` and as a table for people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from .figures import Figures
from .lines import Reading, Rejected, Rejection
from .money import pounds
from .orders import MAX_LINES, Order
from .products import Product
from .users import NewUser, is_guest


@dataclass(frozen=True, slots=True)
class Counts:
    """Beyond the orders themselves; `lines…` and `invoices…` count what the source has."""

    lines_read: int
    lines_kept: int
    lines_for_guests: int
    lines_at_price_zero: int
    invoices_read: int
    invoices_kept: int
    invoices_split: int
    customers: int
    guests: int
    products: int
    spellings_merged: int


@dataclass(frozen=True, slots=True)
class Report:
    counts: Counts
    rejected_lines: dict[Rejection, Rejected]
    rejected_invoices: Counter[str]
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        return {
            "counts": {camel_case(name): count for name, count in asdict(self.counts).items()},
            "rejectedLines": [
                {
                    "kind": kind.kind,
                    "reason": kind.reason,
                    "lines": rejected.rows,
                    "pounds": str(rejected.pounds),
                }
                for kind, rejected in self.rejected_lines.items()
            ],
            "rejectedInvoices": dict(self.rejected_invoices),
            "figures": self.figures.to_json(),
        }

    def __str__(self) -> str:
        parts = (line_table(self), invoice_table(self), result_table(self), month_table(self.figures))
        return "\n\n".join("\n".join(part) for part in parts)


def report_on(
    reading: Reading, orders: Sequence[Order], users: Sequence[NewUser], catalogue: dict[str, Product]
) -> Report:
    kept = {line.invoice for line in reading.lines}
    lost = [kinds for invoice, kinds in reading.reasons_by_invoice.items() if invoice not in kept]
    guests = sum(is_guest(new.user) for new in users)
    products = len(set(catalogue.values()))
    counts = Counts(
        lines_read=reading.rows,
        lines_kept=len(reading.lines),
        lines_for_guests=sum(len(order.lines) for order in orders if is_guest(order.buyer)),
        lines_at_price_zero=sum(line.pence == 0 for line in reading.lines),
        invoices_read=len(kept) + len(lost),
        invoices_kept=len(kept),
        invoices_split=sum(order.reference.endswith("/2") for order in orders),
        customers=len(users) - guests,
        guests=guests,
        products=products,
        spellings_merged=len(catalogue) - products,
    )
    causes = Counter(" + ".join(kind.kind for kind in Rejection if kind in kinds) for kinds in lost)
    return Report(counts, reading.rejected, causes, figures_of(orders))


def figures_of(orders: Sequence[Order]) -> Figures:
    figures = Figures()
    for order in orders:
        figures.add(order.buyer.email, order.placed_at, order.totals)
    return figures


def line_table(report: Report) -> Iterator[str]:
    counts, rejected = report.counts, report.rejected_lines
    lost, kept = sum(one.pounds for one in rejected.values()), Decimal(pounds(report.figures.overall.pence))
    yield f"{'LINES':<24}{'count':>12}{'GBP':>16}"
    yield row("read", counts.lines_read, kept + lost)
    yield row("kept", counts.lines_kept, kept)
    for kind, one in rejected.items():
        yield row(kind.kind, one.rows, one.pounds, kind.reason)


def invoice_table(report: Report) -> Iterator[str]:
    counts = report.counts
    yield "INVOICES"
    yield row("read", counts.invoices_read)
    yield row(
        "kept", counts.invoices_kept, remark=f"{counts.invoices_split:,} of them cut at {MAX_LINES} lines"
    )
    for causes, invoices in report.rejected_invoices.most_common():
        yield row(causes, invoices, remark="no line to keep")


def result_table(report: Report) -> Iterator[str]:
    counts, overall = report.counts, report.figures.overall
    guests = f"{counts.guests} guests, one a country, bought {counts.lines_for_guests:,} of the lines"
    yield "WRITTEN"
    yield row("orders", overall.orders, Decimal(pounds(overall.pence)))
    yield row("their lines", overall.lines, remark=f"{counts.lines_at_price_zero:,} free of charge")
    yield row("their pieces", overall.quantity)
    yield row("users", counts.customers + counts.guests, remark=guests)
    yield row("products", counts.products, remark=f"{counts.spellings_merged} other spellings merged")


def month_table(figures: Figures) -> Iterator[str]:
    yield f"{'ORDERS BY MONTH':<24}{'count':>12}{'GBP':>16}{'lines':>12}{'pieces':>12}"
    for month, totals in sorted(figures.months.items()):
        remark = f"{totals.lines:>10,}{totals.quantity:>12,}"
        yield row(month, totals.orders, Decimal(pounds(totals.pence)), remark)


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def row(name: str, count: int, amount: Decimal | None = None, remark: str = "") -> str:
    shown = "" if amount is None else f"{amount:,}"
    return f"  {name:<22}{count:>12,}{shown:>16}  {remark}".rstrip()
