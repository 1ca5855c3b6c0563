"""Countries: ISO 3166-1 alpha-2 codes."""

from iso3166 import countries_by_alpha2


def check_country(code: str) -> str | None:
    """What is wrong with a country code, if anything."""
    return None if code in countries_by_alpha2 else "must be an ISO 3166-1 alpha-2 country code such as GB"
