"""The documents: small, public, each at one address.

What a document says is put together once and kept; only the address of the service in it is the request's.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from tradepost import __version__
from tradepost.console import event_types, prose
from tradepost.console.document import (
    HERE,
    JSON,
    SCHEMA,
    TEXT,
    Content,
    Headers,
    Kept,
    Page,
    Source,
    kept_json,
    kept_page,
    page,
    prefers_json,
)
from tradepost.console.first_steps import first_steps
from tradepost.console.problem_kinds import explained
from tradepost.console.reference import Reference
from tradepost.http.answers import encode
from tradepost.http.request import Request
from tradepost.metrics import Metrics
from tradepost.problems import VersionRetired
from tradepost.rest.openapi.document import document
from tradepost.rest.surface import Rest
from tradepost.settings import Settings
from tradepost.storage.database import Database
from tradepost.versions.changes import Version

_VARY = ((b"vary", b"Accept"),)


class Documents:
    """The documents by their addresses."""

    def __init__(self, rest: Rest, database: Database, metrics: Metrics, settings: Settings) -> None:
        self._rest = rest
        self._lifecycle = rest.lifecycle
        self._database = database
        self._metrics = metrics
        self._settings = settings
        self._catalogue = event_types.catalogue(rest.performer.emitter.types, settings.event_prefix, HERE)
        self._kept: dict[tuple[str, ...], Kept] = {}

    def pages(self) -> dict[str, Page]:
        """Every document by its address."""
        return {
            "/": page("/", self._either("home", self._home, self._places)),
            "/livez": page("/livez", self._live),
            "/readyz": page("/readyz", self._ready),
            "/metrics": page("/metrics", self._figures),
            "/versions": page("/versions", self._versions),
            "/docs": page("/docs", self._newest_docs),
            "/event-types": page("/event-types", self._event_types),
            "/problems": page("/problems", self._either("problems", self._problem_list, self._problem_items)),
            **dict(self._of_versions()),
            **dict(self._of_event_types()),
            **dict(self._of_problems()),
        }

    async def _live(self, request: Request) -> Content:
        del request
        return Content(JSON, b'{"status":"live"}')

    async def _ready(self, request: Request) -> Content:
        del request
        await self._database.schema_version()
        return Content(JSON, b'{"status":"ready"}')

    async def _figures(self, request: Request) -> Content:
        del request
        return Content(TEXT, self._metrics.exposition())

    async def _versions(self, request: Request) -> Content:
        del request
        return Content(JSON, encode({"items": self._lifecycle.document(), "next": None}))

    async def _newest_docs(self, request: Request) -> Content:
        return await self._docs(self._lifecycle.default())(request)

    async def _event_types(self, request: Request) -> Content:
        items = {"items": self._catalogue, "next": None}
        return await self._shown(request, ("event-types",), lambda: kept_json(items))

    def _of_versions(self) -> Iterator[tuple[str, Page]]:
        for version in self._lifecycle.versions:
            for name, source in (("openapi.json", self._openapi(version)), ("docs", self._docs(version))):
                path = f"/{version.name}/{name}"
                yield path, page(path, source, self._life(version))

    def _of_event_types(self) -> Iterator[tuple[str, Page]]:
        for entry in self._catalogue:
            source = self._fixed(kept_json(entry["schema"], SCHEMA))
            yield f"/event-types/{entry['type']}", page("/event-types/{type}", source)

    def _of_problems(self) -> Iterator[tuple[str, Page]]:
        for each in explained(HERE):
            source = self._either(
                each.kind,
                lambda each=each: kept_page("problem.html", problem=each),  # type: ignore[misc]
                lambda each=each: kept_json(each._asdict()),  # type: ignore[misc]
            )
            yield f"/problems/{each.kind}", page("/problems/{kind}", source)

    def _life(self, version: Version) -> Callable[[Request], None]:
        """A version's documents live and end with it."""

        def check(request: Request) -> None:
            request.more_headers = self._lifecycle.headers(version, self._base_url(request))
            if self._lifecycle.phase(version) == "retired":
                message = f"API version {version.name} was retired; see /versions"
                raise VersionRetired(message)

        return check

    def _fixed(self, kept: Kept) -> Source:
        async def content(request: Request) -> Content:
            return kept.at(self._base_url(request))

        return content

    def _either(self, name: str, html: Callable[[], Kept], json: Callable[[], Kept]) -> Source:
        """A page for people, or JSON for who would rather have that."""

        async def content(request: Request) -> Content:
            newest = self._lifecycle.default().name  # which the clock may change
            if prefers_json(request.headers.get(b"accept", b"*/*")):
                return await self._shown(request, (name, newest, "json"), json, _VARY)
            return await self._shown(request, (name, newest, "html"), html, _VARY)

        return content

    def _openapi(self, version: Version) -> Source:
        def made() -> Kept:
            return kept_json(self._document(version))

        return self._by_phase("openapi", version, made)

    def _docs(self, version: Version) -> Source:
        def made() -> Kept:
            found = self._document(version)
            reference = Reference(found)
            lead, rules = prose.sections(found["info"]["description"])
            return kept_page(
                "docs.html",
                version=version.name,
                versions=[each.name for each in self._lifecycle.versions],
                phase=self._lifecycle.phase(version),
                lead=lead,
                rules=rules,
                steps=first_steps(found, HERE),
                parts=reference.parts(),
                schemas=reference.schemas(),
                header_fields=reference.header_fields(),
                event_types=self._catalogue,
                problems=explained(HERE),
            )

        return self._by_phase("docs", version, made)

    def _by_phase(self, name: str, version: Version, make: Callable[[], Kept]) -> Source:
        """What is kept for each phase of a version's life, as it says where the version is."""

        async def content(request: Request) -> Content:
            phase = self._lifecycle.phase(version)
            return await self._shown(request, (name, version.name, phase), make)

        return content

    async def _shown(
        self, request: Request, name: tuple[str, ...], make: Callable[[], Kept], headers: Headers = ()
    ) -> Content:
        """What is kept under a name; made beside the loop when it is first asked for, as it takes a while."""
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = await asyncio.to_thread(make)
        return kept.at(self._base_url(request), headers)

    def _base_url(self, request: Request) -> str:
        return self._rest.base_url or request.base_url

    def _document(self, version: Version) -> dict[str, Any]:
        deprecated = self._lifecycle.phase(version) != "active"
        names = [entry["type"] for entry in self._catalogue]
        shapes = self._rest.routes[version].shapes
        return document(version, shapes, HERE, names, self._settings, deprecated=deprecated)

    def _home(self) -> Kept:
        return kept_page("home.html", places=self._addresses(), release=__version__)

    def _places(self) -> Kept:
        named = {name: address for name, address, _ in self._addresses()}
        return kept_json({"name": "tradepost", "release": __version__, **named})

    def _addresses(self) -> list[tuple[str, str, str]]:
        """Where things are: a name, the address, and what is there."""
        newest = self._lifecycle.default().name
        return [
            ("docs", f"{HERE}/docs", "How to use it: first steps, rules, every operation."),
            ("openapi", f"{HERE}/{newest}/openapi.json", "The same for programs, in OpenAPI 3.1."),
            ("graphql", f"{HERE}/graphql", "GraphQL; outside production a browser gets a page to try it in."),
            ("graphqlSchema", f"{HERE}/graphql/schema", "Its schema."),
            ("versions", f"{HERE}/versions", "The versions of the API, and where each is in its life."),
            ("eventTypes", f"{HERE}/event-types", "What is announced, with the JSON Schemas."),
            ("problems", f"{HERE}/problems", "What can go wrong, and what to do then."),
            ("live", f"{HERE}/livez", "Whether the process runs."),
            ("ready", f"{HERE}/readyz", "Whether it can answer."),
            ("metrics", f"{HERE}/metrics", "Figures for Prometheus."),
        ]

    def _problem_list(self) -> Kept:
        return kept_page("problems.html", problems=explained(HERE))

    def _problem_items(self) -> Kept:
        return kept_json({"items": [each._asdict() for each in explained(HERE)], "next": None})
