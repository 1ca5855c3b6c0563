"""Money: integers internally, JSON numbers of major units with an ISO 4217 currency externally.

The integer counts ten-thousandths of the major unit, the smallest minor unit of any currency, so that amounts
in different currencies sort and filter by value. The integer divided by 10,000 is the double nearest to the
decimal amount, and the shortest text of that double is the same decimal; no sum is computed in binary.
"""

from decimal import Decimal

from iso4217 import Currency

UNITS = 10_000  # in one major unit

# Decimals of each currency. Codes without decimals (gold, test codes) are not accepted as currencies.
DECIMALS: dict[str, int] = {
    currency.code: currency.exponent for currency in Currency if currency.exponent is not None
}

MAX_TOTAL = 2**53 - 1  # the largest integer that every JSON parser reads exactly
MAX_PRICE = 10**9 * UNITS


class NotMoney(ValueError):
    """The currency has no such amount; the message says why."""


def to_units(amount: float | Decimal, currency: str) -> int:
    """`19.99`, `GBP` → `199900`. Raises `NotMoney` if the amount has more decimals than the currency."""
    # The repr of a float is the decimal that the client wrote.
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    scaled = exact.scaleb(DECIMALS[currency])
    if scaled != scaled.to_integral_value():
        message = f"must have at most {DECIMALS[currency]} decimals, as {currency} has"
        raise NotMoney(message)
    return int(exact * UNITS)


def check_currency(code: str) -> str | None:
    """What is wrong with a currency code, if anything."""
    return None if code in DECIMALS else "must be an ISO 4217 currency code such as EUR"
