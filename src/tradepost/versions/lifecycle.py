"""The life of a version: active, deprecated, sunset announced, retired (specification, part 3).

`Deprecation` is an HTTP-date, as the specification demands in the sunset phase; `rfc9745` writes it as that
RFC does. `Sunset` is RFC 8594. One header can carry one form only; `/versions` has the dates in RFC 3339.
"""

from dataclasses import dataclass
from typing import Literal

from tradepost.clock import Clock, http_date, instant
from tradepost.versions.changes import Version

Phase = Literal["active", "deprecated", "sunset", "retired"]
DeprecationFormat = Literal["http-date", "rfc9745"]


@dataclass(frozen=True)
class Dates:
    """What an operator announced for a version; instants in milliseconds."""

    deprecated: int | None = None
    sunset: int | None = None
    link: str | None = None


class Lifecycle:
    """Where each version is, by the clock."""

    def __init__(
        self, versions: tuple[Version, ...], dates: dict[str, Dates], clock: Clock, form: DeprecationFormat
    ) -> None:
        self.versions = versions
        self._dates = {version.name: dates.get(version.name, Dates()) for version in versions}
        self._clock = clock
        self._form = form
        self._announced = {name for name, each in self._dates.items() if each.deprecated or each.sunset}

    def is_announced(self, version: Version) -> bool:
        """Whether anything was announced of the version; most are simply active."""
        return version.name in self._announced

    def phase(self, version: Version) -> Phase:
        """Where the version is now."""
        if version.name not in self._announced:
            return "active"
        dates, now = self._dates[version.name], self._clock.now()
        if dates.sunset is not None and now > dates.sunset:
            return "retired"
        if dates.deprecated is not None and now < dates.deprecated:
            return "active"
        return "deprecated" if dates.sunset is None else "sunset"

    def headers(self, version: Version, base_url: str) -> list[tuple[bytes, bytes]]:
        """What every answer of the version carries; nothing while it is active."""
        phase = self.phase(version)
        if phase == "active":
            return []
        dates = self._dates[version.name]
        since = dates.deprecated if dates.deprecated is not None else dates.sunset or 0
        stamp = http_date(since) if self._form == "http-date" else f"@{since // 1000}"
        link = dates.link or f"{base_url}/versions"
        links = [f'<{link}>; rel="deprecation"', *self._successor(version, base_url)]
        found = [
            (b"deprecated", b"true"),
            (b"deprecation", stamp.encode()),
            (b"link", ", ".join(links).encode()),
        ]
        if dates.sunset is not None:
            found.append((b"sunset", http_date(dates.sunset).encode()))
        return found

    def default(self) -> Version:
        """What an address without a version means: the newest active, else the newest not retired."""
        newest = sorted(self.versions, key=lambda version: -version.number)
        for wanted in (("active",), ("deprecated", "sunset")):
            for version in newest:
                if self.phase(version) in wanted:
                    return version
        return newest[0]

    def at(self, day: str) -> Version | None:
        """The newest version introduced by that day."""
        known = [version for version in self.versions if version.introduced <= day]
        return max(known, key=lambda version: version.number, default=None)

    def document(self) -> list[dict[str, object]]:
        """Each version with its phase and dates, for `/versions`."""
        return [
            {
                "version": version.name,
                "phase": self.phase(version),
                "introduced": version.introduced,
                "deprecatedAt": _text(self._dates[version.name].deprecated),
                "sunsetAt": _text(self._dates[version.name].sunset),
                "link": self._dates[version.name].link,
            }
            for version in self.versions
        ]

    def _successor(self, version: Version, base_url: str) -> list[str]:
        later = [
            each for each in self.versions if each.number > version.number and self.phase(each) == "active"
        ]
        return (
            [f'<{base_url}/{max(later, key=lambda each: each.number).name}>; rel="successor-version"']
            if later
            else []
        )


def _text(ms: int | None) -> str | None:
    return None if ms is None else instant(ms)
