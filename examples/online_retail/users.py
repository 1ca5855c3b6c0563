"""Who bought: a user for each customer number, and one guest a country for sales that name no customer."""

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

FIRST = """
Ada Agnes Aisha Alan Alice Amelia Amir Anna Arthur Ben Beth Bridget Callum Cara Carlos Chloe Clara
Colin Daisy Daniel David Dylan Edith Elena Elif Ella Emma Eric Esther Ethan Eva Faye Felix Fiona
Frank Freya George Grace Hannah Harry Hazel Helen Henry Hugo Ida Imran Iris Isaac Isla Ivy Jack Jane
Jonas Josie Julia Karim Kate Leah Lena Leo Lucy Luke Maeve Marta Maya Megan Miles Nadia Nina Noah
Nora Olive Omar Owen Petra Priya Rosa Ruth Sam Zoe
"""
LAST = """
Abbott Adams Ahmed Allen Archer Bailey Baker Barnes Bell Bennett Blake Booth Brooks Carter Chapman
Clarke Cole Cooper Cox Dawson Dixon Doyle Edwards Ellis Evans Farrell Fisher Foster Fox Gibson Grant
Green Griffin Hale Harper Hayes Holmes Hughes Hunt Irwin Jenkins Jones Kaur Kelly King Knight
Lambert Lane Lloyd Marsh Mason Miller Moore Morgan Murphy Newton Nolan Osborne Owens Palmer Parker
Patel Pearce Porter Quinn Reed Reid Rowe Russell Shah Sharp Stone Sutton Taylor Turner Walsh Ward
Webb Wells Young
"""
FIRST_NAMES, LAST_NAMES = FIRST.split(), LAST.split()
# Odd and no multiple of 5, so coprime to the 6,400 pairs: customers whose numbers lie less than that apart
# (the file's span 5,942) all have different names, and neighbours have nothing in common.
STRIDE = 3571
DOMAIN = "online-retail.example"


class User(NamedTuple):
    name: str
    email: str


class NewUser(NamedTuple):
    """A user, and when they first bought something."""

    user: User
    created_at: str


@cache
def buyer(customer: str, country: str) -> User:
    """`customer` as the file has it: `17850.0`, or empty. Raises ValueError where it is no number."""
    return named(int(customer.removesuffix(".0"))) if customer else guest(country.strip() or "Unspecified")


def named(number: int) -> User:
    first, last = divmod(number * STRIDE % (len(FIRST_NAMES) * len(LAST_NAMES)), len(LAST_NAMES))
    return User(f"{FIRST_NAMES[first]} {LAST_NAMES[last]}", f"customer-{number}@{DOMAIN}")


def guest(country: str) -> User:
    place = re.sub(r"[^a-z0-9]+", "-", country.lower()).strip("-")
    return User(f"Guest, {country}", f"guest-{place}@{DOMAIN}")


def is_guest(user: User) -> bool:
    return user.email.startswith("guest-")


def first_bought(purchases: Iterable[tuple[User, str]]) -> list[NewUser]:
    """One entry a user, from (user, time) in the order of the file."""
    first: dict[User, str] = {}
    for user, placed_at in purchases:
        first.setdefault(user, placed_at)
    return [NewUser(user, created_at) for user, created_at in first.items()]
