"""Countries: ISO 3166-1 alpha-2 codes."""

from iso3166 import countries_by_alpha2


def check_country(code: str) -> str | None:
    """Why a country code is not valid; None if it is."""
    return None if code in countries_by_alpha2 else "is not an ISO 3166-1 alpha-2 country code such as GB"
