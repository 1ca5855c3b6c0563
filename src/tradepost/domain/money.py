"""Money: integers inside, a JSON number of major units with its ISO 4217 currency at the edges.

The integer counts ten-thousandths of the major unit, the smallest minor unit that any currency has, so that
amounts of different currencies sort and filter by their value. Divided by 10 000 it is the double nearest to
the decimal, whose shortest text is that decimal again; nothing is ever added up in binary.
"""

from decimal import Decimal

from iso4217 import Currency

UNITS = 10_000  # in one major unit

# Decimals of each currency. Codes without (gold, test codes) are not money to pay with.
DECIMALS: dict[str, int] = {
    currency.code: currency.exponent for currency in Currency if currency.exponent is not None
}

MAX_TOTAL = 2**53 - 1  # what a JSON number carries exactly
MAX_PRICE = 10**9 * UNITS


class NotMoney(ValueError):
    """The amount cannot be an amount of that currency; the message says why."""


def to_units(amount: float | Decimal, currency: str) -> int:
    """`19.99`, `GBP` → `199900`. Raises `NotMoney` for more decimals than the currency has."""
    # The repr of a float is the decimal its writer meant.
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    scaled = exact.scaleb(DECIMALS[currency])
    if scaled != scaled.to_integral_value():
        message = f"must have at most {DECIMALS[currency]} decimals, as {currency} has"
        raise NotMoney(message)
    return int(exact * UNITS)


def check_currency(code: str) -> str | None:
    """What is wrong with a currency code, if anything."""
    return None if code in DECIMALS else "must be an ISO 4217 currency code such as EUR"
