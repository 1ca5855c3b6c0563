"""Demo users with names and addresses of their countries, and email addresses that reach nobody.

example.com, example.org and example.net are reserved (RFC 2606).
"""

import unicodedata
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

_DOMAINS = ("example.com", "example.org", "example.net")
_TRANSLITERATED = str.maketrans({"ß": "ss"})
_FLATS = 0.2  # share of all homes


class Country(NamedTuple):
    """Names and addresses of a country. `#` in a postal code is any digit; a slash precedes a region."""

    code: str
    currency: str
    share: int  # of a hundred people
    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[tuple[str, str], ...]
    line: str


class Home(NamedTuple):
    """The members of an address record."""

    line1: str
    line2: str | None
    city: str
    region: str | None
    postal_code: str
    country: str


class Person(NamedTuple):
    """The name, email address and country of a user."""

    name: str
    email: str
    country: Country


def _countries() -> tuple[Country, ...]:
    data = msgspec.json.decode(Path(__file__).with_name("people.json").read_bytes())
    for each in data:
        each |= {"first": tuple(each["first"].split()), "last": tuple(each["last"].split())}
        each |= {"streets": tuple(each["streets"]), "cities": tuple(each["cities"].items())}
    return tuple(Country(**each) for each in data)


COUNTRIES = _countries()
_SHARES = [country.share for country in COUNTRIES]


class People:
    """Makes people, each with a number of its own, which keeps the emails of namesakes apart."""

    def __init__(self, random: Random, last_number: int) -> None:
        self._random = random
        self._number = last_number
        self._plain_names = last_number == 0  # in a database with users, every email contains the number
        self._used: set[tuple[str, str]] = set()

    def person(self) -> Person:
        """The next person."""
        draw = self._random
        self._number += 1
        country = draw.choices(COUNTRIES, _SHARES)[0]
        name = draw.choice(country.first), draw.choice(country.last)
        mark = "" if self._plain_names and name not in self._used else str(self._number)
        self._used.add(name)
        local = ".".join(map(_ascii, name)) + mark
        return Person(" ".join(name), f"{local}@{draw.choice(_DOMAINS)}", country)

    def home(self, country: Country) -> Home:
        """An address in a country."""
        draw = self._random
        city, code = draw.choice(country.cities)
        name, _, region = city.partition("/")
        line = country.line.format(street=draw.choice(country.streets), number=draw.randint(1, 120))
        flat = f"{draw.randint(1, 9)}{draw.choice('ABC')}" if draw.random() < _FLATS else None
        digits = "".join(str(draw.randint(0, 9)) if each == "#" else each for each in code)
        return Home(line, flat, name, region or None, digits, country.code)


def _ascii(name: str) -> str:
    """`Ayşe` → `ayse`."""
    letters = name.lower().translate(_TRANSLITERATED)
    return unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode()
