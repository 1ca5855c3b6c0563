"""The routes of the documents, which are small and public.

A document is rendered once and cached; only the URL of the service in it depends on the request.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from tradepost import __version__
from tradepost.documents import event_types, prose
from tradepost.documents.document import (
    HERE,
    JSON,
    SCHEMA,
    TEXT,
    CachedDocument,
    Content,
    Headers,
    Life,
    Source,
    cached_json,
    cached_page,
    page,
    prefers_json,
)
from tradepost.documents.first_steps import first_steps
from tradepost.documents.problem_kinds import explained
from tradepost.documents.reference import Reference
from tradepost.http.answers import encode
from tradepost.http.exchange import Handler
from tradepost.http.request import Request
from tradepost.metrics import Metrics
from tradepost.problems import Problem, VersionRetired
from tradepost.rest.openapi.document import document
from tradepost.rest.surface import Rest
from tradepost.settings import Settings
from tradepost.storage.database import Database
from tradepost.versions.changes import Version

_VARY = ((b"vary", b"Accept"),)
Render = Callable[[], CachedDocument]


class DocumentRoutes:
    """The documents by their addresses."""

    def __init__(self, rest: Rest, database: Database, metrics: Metrics, settings: Settings) -> None:
        self._rest = rest
        self._lifecycle = rest.lifecycle
        self._database = database
        self._metrics = metrics
        self._settings = settings
        self._catalogue = event_types.catalogue(rest.performer.emitter.types, settings.event_prefix, HERE)
        self._cached: dict[tuple[str, ...], CachedDocument] = {}

    def pages(self) -> dict[str, Handler]:
        """All documents by their paths."""
        return {
            "/": page("/", self._either("home", self._home, self._places)),
            "/livez": page("/livez", self._live),
            "/readyz": page("/readyz", self._ready),
            "/metrics": page("/metrics", self._exposition),
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

    async def _exposition(self, request: Request) -> Content:
        del request
        return Content(TEXT, self._metrics.exposition())

    async def _versions(self, request: Request) -> Content:
        del request
        return Content(JSON, encode({"items": self._lifecycle.document(), "next": None}))

    async def _newest_docs(self, request: Request) -> Content:
        return await self._docs(self._lifecycle.default())(request)

    async def _event_types(self, request: Request) -> Content:
        items = {"items": self._catalogue, "next": None}
        return await self._shown(request, ("event-types",), lambda: cached_json(items))

    def _of_versions(self) -> Iterator[tuple[str, Handler]]:
        for version in self._lifecycle.versions:
            for name, source in (("openapi.json", self._openapi(version)), ("docs", self._docs(version))):
                path = f"/{version.name}/{name}"
                yield path, page(path, source, self._life(version))

    def _of_event_types(self) -> Iterator[tuple[str, Handler]]:
        for entry in self._catalogue:
            source = self._fixed(cached_json(entry["schema"], SCHEMA))
            yield f"/event-types/{entry['type']}", page("/event-types/{type}", source)

    def _of_problems(self) -> Iterator[tuple[str, Handler]]:
        for each in explained(HERE):
            source = self._either(
                each.kind,
                lambda each=each: cached_page("problem.html", problem=each),  # type: ignore[misc]
                lambda each=each: cached_json(each._asdict()),  # type: ignore[misc]
            )
            yield f"/problems/{each.kind}", page("/problems/{kind}", source)

    def _life(self, version: Version) -> Life:
        """The headers of a version, and `VersionRetired` once it is."""

        def life(request: Request) -> tuple[Headers, Problem | None]:
            refusal = None
            if self._lifecycle.phase(version) == "retired":
                refusal = VersionRetired(f"API version {version.name} was retired; see /versions")
            return tuple(self._lifecycle.headers(version, request.base_url)), refusal

        return life

    def _fixed(self, document: CachedDocument) -> Source:
        async def content(request: Request) -> Content:
            return document.at(request.base_url)

        return content

    def _either(self, name: str, html: Render, json: Render) -> Source:
        """HTML, or JSON for clients that prefer it."""

        async def content(request: Request) -> Content:
            newest = self._lifecycle.default().name  # it changes with time
            if prefers_json(request.headers.get(b"accept", b"*/*")):
                return await self._shown(request, (name, newest, "json"), json, _VARY)
            return await self._shown(request, (name, newest, "html"), html, _VARY)

        return content

    def _openapi(self, version: Version) -> Source:
        return self._by_phase("openapi", version, lambda: cached_json(self._document(version)))

    def _docs(self, version: Version) -> Source:
        def render() -> CachedDocument:
            openapi = self._document(version)
            reference = Reference(openapi)
            lead, rules = prose.sections(openapi["info"]["description"])
            return cached_page(
                "docs.html",
                version=version.name,
                versions=[each.name for each in self._lifecycle.versions],
                phase=self._lifecycle.phase(version),
                lead=lead,
                rules=rules,
                steps=first_steps(openapi, HERE),
                parts=reference.parts(),
                schemas=reference.schemas(),
                header_fields=reference.header_fields(),
                event_types=self._catalogue,
                problems=explained(HERE),
            )

        return self._by_phase("docs", version, render)

    def _by_phase(self, name: str, version: Version, render: Render) -> Source:
        """A document that is cached for each phase of a version's life, since its content depends on it."""

        async def content(request: Request) -> Content:
            phase = self._lifecycle.phase(version)
            return await self._shown(request, (name, version.name, phase), render)

        return content

    async def _shown(
        self,
        request: Request,
        name: tuple[str, ...],
        render: Render,
        headers: Headers = (),
    ) -> Content:
        """The cached document of a name; the first request renders it, in a thread because that is slow."""
        document = self._cached.get(name)
        if document is None:
            document = self._cached[name] = await asyncio.to_thread(render)
        return document.at(request.base_url, headers)

    def _document(self, version: Version) -> dict[str, Any]:
        deprecated = self._lifecycle.phase(version) != "active"
        names = [entry["type"] for entry in self._catalogue]
        shapes = self._rest.routes[version].shapes
        return document(version, shapes, HERE, names, self._settings, deprecated=deprecated)

    def _home(self) -> CachedDocument:
        return cached_page("home.html", places=self._addresses(), release=__version__)

    def _places(self) -> CachedDocument:
        named = {name: address for name, address, _ in self._addresses()}
        return cached_json({"name": "tradepost", "release": __version__, **named})

    def _addresses(self) -> list[tuple[str, str, str]]:
        """The links of the home page: a name, the URL, and a description."""
        newest = self._lifecycle.default().name
        return [
            ("docs", f"{HERE}/docs", "The documentation: first steps, rules, and all operations."),
            ("openapi", f"{HERE}/{newest}/openapi.json", "The contract of the API, as OpenAPI 3.1."),
            (
                "graphql",
                f"{HERE}/graphql",
                "The GraphQL endpoint; outside production with a page to try it.",
            ),
            ("graphqlSchema", f"{HERE}/graphql/schema", "The GraphQL schema."),
            ("versions", f"{HERE}/versions", "The versions of the API, and the phase of each."),
            ("eventTypes", f"{HERE}/event-types", "The types of events, with their JSON Schemas."),
            ("problems", f"{HERE}/problems", "The kinds of problems, with advice."),
            ("live", f"{HERE}/livez", "Liveness: whether the process runs."),
            ("ready", f"{HERE}/readyz", "Readiness: whether the database answers."),
            ("metrics", f"{HERE}/metrics", "Metrics for Prometheus."),
        ]

    def _problem_list(self) -> CachedDocument:
        return cached_page("problems.html", problems=explained(HERE))

    def _problem_items(self) -> CachedDocument:
        return cached_json({"items": [each._asdict() for each in explained(HERE)], "next": None})
