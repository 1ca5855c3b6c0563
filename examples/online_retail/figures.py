"""What both sides count, the conversion and the running service: orders in all, by month and by user."""

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Totals:
    orders: int = 0
    lines: int = 0
    quantity: int = 0
    pence: int = 0

    def add(self, other: "Totals") -> None:
        self.orders += other.orders
        self.lines += other.lines
        self.quantity += other.quantity
        self.pence += other.pence


@dataclass(slots=True)
class Figures:
    overall: Totals = field(default_factory=Totals)
    months: dict[str, Totals] = field(default_factory=lambda: defaultdict(Totals))
    users: dict[str, Totals] = field(default_factory=lambda: defaultdict(Totals))

    def add(self, email: str, placed_at: str, order: Totals) -> None:
        """Counts one order; its month is the `2010-12` that `placed_at` begins with."""
        self.overall.add(order)
        self.months[placed_at[:7]].add(order)
        self.users[email].add(order)

    def to_json(self) -> dict[str, Any]:
        return {
            "overall": asdict(self.overall),
            "months": {month: asdict(totals) for month, totals in sorted(self.months.items())},
            "users": {email: asdict(totals) for email, totals in sorted(self.users.items())},
        }

    @classmethod
    def from_json(cls, figures: dict[str, Any]) -> "Figures":
        return cls(
            Totals(**figures["overall"]),
            {month: Totals(**totals) for month, totals in figures["months"].items()},
            {email: Totals(**totals) for email, totals in figures["users"].items()},
        )
