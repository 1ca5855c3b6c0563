"""Demo users with names and addresses of their countries, and email addresses that reach nobody.

example.com, example.org and example.net are reserved (RFC 2606).
"""

import unicodedata
from random import Random
from typing import NamedTuple

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
    line: str = "{number} {street}"


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


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


COUNTRIES = (
    Country(
        "DE",
        "EUR",
        24,
        _words(
            "Anna Lena Mia Emma Hannah Lea Clara Johanna Greta Frieda Paul Jonas Felix Lukas Max Ben"
            " Elias Noah Moritz Anton Ayşe Emre Katharina Matthias"
        ),
        _words(
            "Müller Schmidt Schneider Fischer Weber Wagner Becker Schulz Hoffmann Koch Bauer Richter"
            " Klein Wolf Schröder Neumann Braun Zimmermann Krüger Hartmann Lange Demir Vogel Keller"
        ),
        (
            "Lindenstraße",
            "Gartenweg",
            "Hauptstraße",
            "Bergstraße",
            "Schillerstraße",
            "Am Mühlbach",
            "Rosenweg",
        ),
        (
            ("Berlin", "10###"),
            ("Hamburg", "20###"),
            ("Köln", "50###"),
            ("Leipzig", "04###"),
            ("Freiburg", "79###"),
        ),
        "{street} {number}",
    ),
    Country(
        "GB",
        "GBP",
        24,
        _words(
            "Amelia Olivia Isla Freya Grace Harriet Aisha Priya Beth Niamh Oliver George Harry Callum"
            " Rhys Owen Imran Arthur Theo Alfie Nadia Samuel Fiona Hugh"
        ),
        _words(
            "Taylor Walker Wright Hughes Patel Khan Murray Campbell Evans Bennett Shaw Ellis Foster"
            " Marsh Reid Lloyd Webb Doyle Ashworth Pemberton Fraser Begum Osborne Turner"
        ),
        (
            "Church Lane",
            "Station Road",
            "Mill Street",
            "Victoria Road",
            "The Green",
            "Park Avenue",
            "Orchard Close",
        ),
        (
            ("London", "SE#5 #AB"),
            ("Leeds", "LS# #DT"),
            ("Bristol", "BS# #RQ"),
            ("Edinburgh", "EH# #HL"),
            ("Cardiff", "CF1# #NE"),
        ),
    ),
    Country(
        "US",
        "USD",
        26,
        _words(
            "Ava Sophia Madison Zoe Maya Hazel Imani Camila Naomi Ruth Ethan Liam Mason Logan Caleb"
            " Andre Diego Wyatt Julian Marcus Grace Hector Tessa Reuben"
        ),
        _words(
            "Johnson Williams Garcia Davis Rodriguez Martinez Anderson Thompson Nguyen Jackson Rivera"
            " Cooper Sullivan Park Washington Flores Bryant Kowalski Hayes Ortiz Chen Whitfield"
            " Brooks Lopez"
        ),
        (
            "Maple Street",
            "Oak Avenue",
            "Cedar Lane",
            "2nd Street",
            "Lincoln Avenue",
            "River Road",
            "Elm Court",
        ),
        (
            ("Portland/OR", "972##"),
            ("Austin/TX", "787##"),
            ("Madison/WI", "537##"),
            ("Brooklyn/NY", "112##"),
            ("Denver/CO", "802##"),
        ),
    ),
    Country(
        "FR",
        "EUR",
        14,
        _words(
            "Camille Chloé Manon Inès Louise Jeanne Zoé Élise Margaux Salomé Hugo Louis Gabriel"
            " Arthur Jules Rayan Théo Antoine Bastien Mathis Yasmine Colette Émile Noémie"
        ),
        _words(
            "Martin Bernard Dubois Moreau Laurent Lefebvre Leroy Roux Fournier Girard Bonnet Mercier"
            " Blanc Garnier Chevalier Perrin Benali Renaud Picard Lambert Marchand Gauthier Besson"
            " Delacroix"
        ),
        (
            "rue des Lilas",
            "rue de la République",
            "avenue Jean Jaurès",
            "rue du Moulin",
            "place du Marché",
            "quai des Bateliers",
        ),
        (
            ("Lyon", "6900#"),
            ("Nantes", "44#00"),
            ("Paris", "750##"),
            ("Strasbourg", "67#00"),
            ("Toulouse", "31#00"),
        ),
    ),
    Country(
        "SE",
        "SEK",
        7,
        _words(
            "Alice Astrid Ebba Saga Linnea Elsa Freja Maja Ingrid Signe Axel Oskar Nils Erik Viggo"
            " Leif Hampus Anders Malte Arvid"
        ),
        _words(
            "Andersson Johansson Karlsson Nilsson Eriksson Larsson Olsson Persson Lindberg Bergström"
            " Sandberg Holm Ekström Nyström Åkesson Sjöberg Dahl Wallin Öberg Hedlund"
        ),
        ("Storgatan", "Skolgatan", "Björkvägen", "Hamngatan", "Kungsgatan", "Ängsvägen"),
        (("Stockholm", "11# ##"), ("Göteborg", "41# ##"), ("Malmö", "21# ##"), ("Umeå", "90# ##")),
        "{street} {number}",
    ),
    Country(
        "JP",
        "JPY",
        5,
        _words(
            "Yui Sakura Hina Aoi Rin Mei Akari Haruka Naoko Emi Haruto Sota Yuto Ren Kaito Daiki"
            " Takumi Kenji Hiroshi Shun"
        ),
        _words(
            "Sato Suzuki Takahashi Tanaka Watanabe Ito Yamamoto Nakamura Kobayashi Kato Yoshida"
            " Yamada Sasaki Matsumoto Inoue Kimura Shimizu Hayashi Mori Ogawa"
        ),
        ("Sakuragaoka", "Midorimachi", "Honcho", "Asahimachi", "Motomachi"),
        (
            ("Setagaya-ku/Tokyo", "154-00##"),
            ("Sakyo-ku/Kyoto", "606-8###"),
            ("Chuo-ku/Osaka", "540-00##"),
            ("Chuo-ku/Sapporo", "060-00##"),
        ),
        "{number}-12-5 {street}",
    ),
)
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
