"""Pounds and pence: inside, an amount is an integer of pence; text and JSON carry pounds, exactly."""

import re
from decimal import Decimal

CURRENCY = "GBP"
AMOUNT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,10})?")


class FractionOfPennyError(ValueError):
    """An amount with more decimals than a penny has."""


def exact(pounds: str | Decimal | int) -> Decimal:
    """Raises ValueError where `pounds` is no amount, as NaN and 1E9 are none."""
    if not AMOUNT.fullmatch(text := str(pounds)):
        message = f"not an amount in pounds: {text!r}"
        raise ValueError(message)
    return Decimal(text)


def pence(pounds: str | Decimal | int) -> int:
    """Raises FractionOfPennyError, or ValueError as `exact` does."""
    if (hundredths := exact(pounds) * 100) % 1:
        raise FractionOfPennyError(pounds)
    return int(hundredths)


def pounds(amount: int) -> str:
    """`255` as `2.55`: a CSV field and a JSON number alike."""
    whole, rest = divmod(abs(amount), 100)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:02}"
