"""The two kinds of columns, for use in migrations."""

from typing import Any

from sqlalchemy import Column

from tradepost.storage.tables import BIG, BYTES_ORDERED


def text(name: str, *constraints: Any, nullable: bool = False, **options: Any) -> Column[str]:
    """A text column, which compares by bytes on both engines."""
    return Column(name, BYTES_ORDERED, *constraints, nullable=nullable, **options)


def integer(name: str, *constraints: Any, nullable: bool = False, **options: Any) -> Column[int]:
    """A column of 64-bit integers."""
    return Column(name, BIG, *constraints, nullable=nullable, **options)
