"""The lifecycle of a version: active, deprecated, sunset announced, retired (specification, part 3).

`Deprecation` is an HTTP-date, as the specification demands in the sunset phase, or in the form of RFC 9745 if
it is so configured. `Sunset` follows RFC 8594. `/versions` has the dates in RFC 3339.
"""

from dataclasses import dataclass
from typing import Literal

from tradepost.clock import Clock, http_date, instant
from tradepost.versions.changes import Version

Phase = Literal["active", "deprecated", "sunset", "retired"]
DeprecationFormat = Literal["http-date", "rfc9745"]


@dataclass(frozen=True)
class Dates:
    """The dates that the operator has announced for a version, and the URL of a page about them."""

    deprecated_ms: int | None = None
    sunset_ms: int | None = None
    link: str | None = None


class Lifecycle:
    """The phase of each version at the present time."""

    def __init__(
        self, versions: tuple[Version, ...], dates: dict[str, Dates], clock: Clock, form: DeprecationFormat
    ) -> None:
        self.versions = versions
        self._dates = {version.name: dates.get(version.name, Dates()) for version in versions}
        self._clock = clock
        self._form = form
        self._announced = {name for name, each in self._dates.items() if each.deprecated_ms or each.sunset_ms}

    def is_announced(self, version: Version) -> bool:
        """Whether a date was announced for the version; most versions have none."""
        return version.name in self._announced

    def phase(self, version: Version) -> Phase:
        """The present phase of the version."""
        if version.name not in self._announced:
            return "active"
        dates, now_ms = self._dates[version.name], self._clock.now_ms()
        if dates.sunset_ms is not None and now_ms > dates.sunset_ms:
            return "retired"
        if dates.deprecated_ms is not None and now_ms < dates.deprecated_ms:
            return "active"
        return "deprecated" if dates.sunset_ms is None else "sunset"

    def headers(self, version: Version, base_url: str) -> list[tuple[bytes, bytes]]:
        """The header fields of every response of the version; none while it is active."""
        phase = self.phase(version)
        if phase == "active":
            return []
        dates = self._dates[version.name]
        since_ms = dates.deprecated_ms if dates.deprecated_ms is not None else dates.sunset_ms or 0
        stamp = http_date(since_ms) if self._form == "http-date" else f"@{since_ms // 1000}"
        link = dates.link or f"{base_url}/versions"
        links = [f'<{link}>; rel="deprecation"', *self._successor(version, base_url)]
        fields = [
            (b"deprecated", b"true"),
            (b"deprecation", stamp.encode()),
            (b"link", ", ".join(links).encode()),
        ]
        if dates.sunset_ms is not None:
            fields.append((b"sunset", http_date(dates.sunset_ms).encode()))
        return fields

    def default(self) -> Version:
        """The version of paths without one: the newest active one, else the newest not retired."""
        newest = sorted(self.versions, key=lambda version: -version.number)
        for wanted in (("active",), ("deprecated", "sunset")):
            for version in newest:
                if self.phase(version) in wanted:
                    return version
        return newest[0]

    def at(self, day: str) -> Version | None:
        """The newest version introduced by that day (`2026-01-01`); None if there is none."""
        known = [version for version in self.versions if version.introduced <= day]
        return max(known, key=lambda version: version.number, default=None)

    def document(self) -> list[dict[str, object]]:
        """Each version with its phase and dates, for `/versions`."""
        return [
            {
                "version": version.name,
                "phase": self.phase(version),
                "introduced": version.introduced,
                "deprecatedAt": _text(self._dates[version.name].deprecated_ms),
                "sunsetAt": _text(self._dates[version.name].sunset_ms),
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
