"""The REST surface: a request goes from its target through access control to the method's handler.

Order of refusal: path, life of the version, key, rate, method, permission, `Accept`; then the handler's own.
"""

from datetime import date

from msgspec import Struct

from tradepost.http import exchange
from tradepost.http.access_control import AccessControl, Admission
from tradepost.http.answers import Answer
from tradepost.http.exchange import Exchange
from tradepost.http.request import Request
from tradepost.perform import Performer
from tradepost.problems import Malformed, MethodNotAllowed, NotFound, Problem, VersionRetired
from tradepost.resource import Resource
from tradepost.rest import negotiation
from tradepost.rest.routes import Place, Route, Routes
from tradepost.rest.shape import Shape
from tradepost.rest.verbs import Call
from tradepost.versions.changes import Version
from tradepost.versions.lifecycle import Lifecycle

_NOT_MODIFIED = 304
_JSON = b"application/json"
_VARY_BY_VERSION = (b"vary", b"API-Version")
_NO_STORE = (b"cache-control", b"no-store")
_PATCHES = (b"accept-patch", b"application/merge-patch+json, application/json")


class RequestTarget(Struct, frozen=True):
    """What a request is addressed to, and the headers that every answer of it has.

    A target that cannot be served has a `refusal`. `versioned` tells whether the path names the version.
    """

    version: Version | None
    place: Place | None
    headers: list[tuple[bytes, bytes]]
    versioned: bool
    refusal: Problem | None = None

    def served(self) -> tuple[Version, Place]:
        """The version and the place; raises the refusal, or `NotFound` if there is nothing at the path."""
        if self.refusal is not None or self.version is None or self.place is None:
            raise self.refusal or _nothing()
        return self.version, self.place

    @property
    def route(self) -> str:
        """The template of the path, for logs and metrics; empty if there is nothing at the path."""
        if self.place is None or self.version is None:
            return ""
        template = self.place.route.template
        return template if self.versioned else template.removeprefix(f"/{self.version.name}")


class Rest:
    """The REST surface: every resource in every version."""

    def __init__(
        self,
        resources: tuple[Resource, ...],
        lifecycle: Lifecycle,
        performer: Performer,
        access_control: AccessControl,
    ) -> None:
        self.lifecycle = lifecycle
        self.performer = performer
        self.routes = {
            version: Routes(
                version,
                [Shape(resource, version) for resource in resources],
                announced=lifecycle.is_announced(version),
            )
            for version in lifecycle.versions
        }
        self._access_control = access_control
        self._by_segment = {version.name: routes for version, routes in self.routes.items()}
        self._numbers = frozenset(version.number for version in lifecycle.versions)

    async def answer(self, request: Request) -> Exchange:
        """The answer to a request, whatever it is; raises nothing but `Disconnected`."""
        target = self._target(request)
        admission: Admission | None = None
        try:
            version, place = target.served()
            if request.method == "OPTIONS":
                answer = _options(place.route)
            else:
                admission = await self._access_control.admit(request)
                call = self._call(request, admission, place, version, versioned=target.versioned)
                answer = await place.route.verbs[request.method].handler(call)
                if answer.status == _NOT_MODIFIED:
                    admission = await self._access_control.give_back(admission)
        except Exception as failure:  # noqa: BLE001 (each has its answer; an unexpected one is logged)
            names = target.place.route.error_names if target.place else None
            answer = exchange.failure_answer(failure, request, names)
        if target.headers:
            answer = Answer(answer.status, [*answer.headers, *target.headers], answer.body)
        return Exchange(answer, target.route, admission)

    def _call(
        self, request: Request, admission: Admission, place: Place, version: Version, *, versioned: bool
    ) -> Call:
        """The request as its handler takes it; raises what stands in its way."""
        caller = admission.admitted()
        route = place.route
        verb = route.verbs.get(request.method)
        if verb is None:
            message = f"{request.method} is not allowed here; use {route.allow}"
            raise MethodNotAllowed(message, allow=route.allow)
        verb.permission.check(caller)
        content_type = _JSON
        if b"accept" in request.headers:
            content_type = negotiation.accepted(request.headers[b"accept"], version.only).content_type
        return Call(
            request,
            caller,
            verb.permission,
            verb.permission.owner(caller),
            route.shape,
            self.performer,
            content_type,
            place.item_id,
            place.parent_id,
            route.alternative,
            () if versioned else ("version",),
        )

    def _target(self, request: Request) -> RequestTarget:
        """What the path names, in the version that the path or else the request names."""
        parts = request.path.split("/")
        if len(parts) == 1:  # `OPTIONS *`
            return RequestTarget(None, None, [], versioned=True)
        routes = self._by_segment.get(parts[1])
        versioned = routes is not None
        headers = [] if versioned else [_VARY_BY_VERSION]
        try:
            routes = routes or self.routes[self._chosen(request, parts[1])]
        except Problem as refusal:
            return RequestTarget(None, None, headers, versioned, refusal)
        version = routes.version
        if routes.announced:
            headers += self.lifecycle.headers(version, request.base_url)
            if self.lifecycle.phase(version) == "retired":
                retired = VersionRetired(f"API version {version.name} was retired; see /versions")
                return RequestTarget(version, None, headers, versioned, retired)
        return RequestTarget(version, routes.find(parts[2 if versioned else 1 :]), headers, versioned)

    def _chosen(self, request: Request, first: str) -> Version:
        """The version of a path without one: that of Accept, API-Version or ?version, else the default."""
        if first[:1] == "v" and first[1:].isdigit():
            message = f"There is no API version {first}; see /versions"
            raise NotFound(message)
        if not any(routes.begins(first) for routes in self.routes.values()):
            raise _nothing()
        field = request.headers.get(b"accept")
        named = negotiation.accepted(field, self._numbers).version if field is not None else None
        if named is not None:
            return self._by_segment[f"v{named}"].version
        if b"api-version" in request.headers:
            return self._dated(request.headers[b"api-version"].decode("latin-1").strip())
        asked = request.query().get("version")
        if asked is not None:
            return self._numbered(asked)
        return self.lifecycle.default()

    def _numbered(self, number: str) -> Version:
        routes = self._by_segment.get(f"v{number.removeprefix('v')}")
        if routes is None:
            message = "version must be an API version that /versions lists, such as 1"
            raise Malformed(message)
        return routes.version

    def _dated(self, day: str) -> Version:
        try:
            version = self.lifecycle.at(date.fromisoformat(day).isoformat())
        except ValueError:
            version = None
        if version is None:
            message = (
                "API-Version must be a date on or after the first version of /versions, such as 2026-11-20"
            )
            raise Malformed(message)
        return version


def _options(route: Route) -> Answer:
    headers = [(b"allow", route.allow.encode()), _NO_STORE]
    if "PATCH" in route.verbs:
        headers.append(_PATCHES)
    return Answer(204, headers, b"")


def _nothing() -> NotFound:
    return NotFound("There is nothing at this path")
