"""The two kinds of column there are, for migrations to write tables with."""

from typing import Any

from sqlalchemy import Column

from tradepost.storage.tables import BIG, BYTES_ORDERED


def text(name: str, *constraints: Any, nullable: bool = False, **options: Any) -> Column[str]:
    """A text, compared by its bytes on both engines."""
    return Column(name, BYTES_ORDERED, *constraints, nullable=nullable, **options)


def integer(name: str, *constraints: Any, nullable: bool = False, **options: Any) -> Column[int]:
    """A 64-bit integer."""
    return Column(name, BIG, *constraints, nullable=nullable, **options)
