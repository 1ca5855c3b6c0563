"""The way in to the REST surface, one order for all: the path, the version's life, the key, the rate, the
method, the scope, what the client accepts; then the verb answers.
"""

from datetime import date

from tradepost.http.answers import Answer
from tradepost.http.door import Door
from tradepost.http.request import Request
from tradepost.perform import Performer
from tradepost.problems import (
    Malformed,
    MethodNotAllowed,
    NotFound,
    VersionRetired,
)
from tradepost.resource import Resource
from tradepost.rest import negotiation
from tradepost.rest.routes import Route, Routes
from tradepost.rest.shape import Shape
from tradepost.rest.verbs import Call
from tradepost.versions.changes import Version
from tradepost.versions.lifecycle import Lifecycle

_NOT_MODIFIED = 304
_JSON = b"application/json"
_VARY_BY_VERSION = (b"vary", b"API-Version")
_NO_STORE = (b"cache-control", b"no-store")
_PATCHES = (b"accept-patch", b"application/merge-patch+json, application/json")


class Rest:
    """The REST surface: every resource in every version."""

    def __init__(
        self,
        resources: tuple[Resource, ...],
        lifecycle: Lifecycle,
        performer: Performer,
        door: Door,
        base_url: str | None,
    ) -> None:
        self.lifecycle = lifecycle
        self.performer = performer
        self.base_url = base_url
        self.routes = {
            version: Routes(version, [Shape(resource, version) for resource in resources])
            for version in lifecycle.versions
        }
        self._door = door
        self._versions = {version.name: version for version in lifecycle.versions}
        self._numbers = frozenset(version.number for version in lifecycle.versions)

    async def answer(self, request: Request) -> Answer:
        """Lets a request in and has its method answer it."""
        parts = request.path.split("/")
        if len(parts) == 1:  # `OPTIONS *`
            message = "There is nothing at this path"
            raise NotFound(message)
        version = self._versions.get(parts[1])
        if version is not None:
            self._check_life(version, request)
            place = self.routes[version].find(parts[2:])
            request.route = place.route.template
        else:
            request.more_headers = [_VARY_BY_VERSION]
            version = self._chosen(request, parts[1])
            self._check_life(version, request)
            request.known_parameters = ("version",)
            place = self.routes[version].find(parts[1:])
            request.route = place.route.template.removeprefix(f"/{version.name}")
        request.names = place.route.error_names
        if request.method == "OPTIONS":
            return _options(place.route)
        caller = await self._door.let_in(request)
        verb = place.route.verbs.get(request.method)
        if verb is None:
            message = f"{request.method} is not allowed here; {place.route.allow} are"
            raise MethodNotAllowed(message, allow=place.route.allow)
        verb.permission.check(caller)
        content_type = _JSON
        if b"accept" in request.headers:
            content_type = negotiation.accepted(request.headers[b"accept"], version.only).content_type
        call = Call(
            request,
            caller,
            verb.permission,
            place.route.shape,
            self.performer,
            content_type,
            self.base_url or request.base_url,
            place.item_id,
            place.parent_id,
            place.route.alternative,
        )
        answer = await verb.handler(call)
        if answer.status == _NOT_MODIFIED:
            await self._door.give_back(request)
        return answer

    def _chosen(self, request: Request, first: str) -> Version:
        """What an address without a version means: Accept, API-Version or ?version says, else the default."""
        if first[:1] == "v" and first[1:].isdigit():
            message = f"There is no API version {first}; see /versions"
            raise NotFound(message)
        if not any(routes.begins(first) for routes in self.routes.values()):
            message = "There is nothing at this path"
            raise NotFound(message)
        field = request.headers.get(b"accept")
        named = negotiation.accepted(field, self._numbers).version if field is not None else None
        if named is not None:
            return self._versions[f"v{named}"]
        if b"api-version" in request.headers:
            return self._dated(request.headers[b"api-version"].decode("latin-1").strip())
        asked = request.query().get("version")
        if asked is not None:
            return self._numbered(asked)
        return self.lifecycle.default()

    def _numbered(self, number: str) -> Version:
        version = self._versions.get(f"v{number.removeprefix('v')}")
        if version is None:
            message = "version names no API version; see /versions"
            raise Malformed(message)
        return version

    def _dated(self, day: str) -> Version:
        try:
            version = self.lifecycle.at(date.fromisoformat(day).isoformat())
        except ValueError:
            version = None
        if version is None:
            message = "API-Version has to be a date on which there was a version, such as 2026-11-20"
            raise Malformed(message)
        return version

    def _check_life(self, version: Version, request: Request) -> None:
        if self.lifecycle.is_announced(version):
            request.more_headers += self.lifecycle.headers(version, self.base_url or request.base_url)
            if self.lifecycle.phase(version) == "retired":
                message = f"API version {version.name} was retired; see /versions"
                raise VersionRetired(message)


def _options(route: Route) -> Answer:
    headers = [(b"allow", route.allow.encode()), _NO_STORE]
    if "PATCH" in route.verbs:
        headers.append(_PATCHES)
    return Answer(204, headers, b"")
