"""Routes: the catalogue's paths in each version, looked up by their segments; and the way in.

    /v1/orders/{id}/line-items      version · collection · id · sub-collection

Who is let in is decided here, in one order for all: the path, the version's life, the key, the rate, the
method, the scope, what the client accepts.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tradepost.access.api_keys import Doorkeeper
from tradepost.access.caller import Caller
from tradepost.access.idempotency import Answer
from tradepost.access.rate_limits import Limit, RateLimits, Verdict
from tradepost.http.request import Request
from tradepost.perform import Performer
from tradepost.problems import (
    Malformed,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RateLimited,
    Unauthenticated,
    VersionRetired,
)
from tradepost.resource import Resource
from tradepost.rest import negotiation, verbs
from tradepost.rest.negotiation import Accepted
from tradepost.rest.shape import Shape
from tradepost.rest.verbs import Call, Handler
from tradepost.versions.changes import Version
from tradepost.versions.lifecycle import Lifecycle

_COLLECTION: dict[str, Handler] = {"GET": verbs.get_list, "HEAD": verbs.get_list, "POST": verbs.post}
_ITEM: dict[str, Handler] = {
    "GET": verbs.get_item,
    "HEAD": verbs.get_item,
    "PUT": verbs.put,
    "PATCH": verbs.patch,
    "DELETE": verbs.delete,
}
_SAFE = frozenset({"GET", "HEAD"})
_ANY = Accepted(b"application/json", None)


class Target(NamedTuple):
    """What a path names: a collection, or an item of it, possibly below a parent."""

    shape: Shape
    route: str
    item_id: str | None
    parent_id: str | None


@dataclass
class Rest:
    """The REST surface."""

    resources: tuple[Resource, ...]
    lifecycle: Lifecycle
    performer: Performer
    doorkeeper: Doorkeeper
    limits: RateLimits
    base_url: str | None

    def __post_init__(self) -> None:
        self.shapes = {
            version: {each.record: Shape(each, version) for each in self.resources}
            for version in self.lifecycle.versions
        }
        self._versions = {version.name: version for version in self.lifecycle.versions}
        self._top = {
            version: {shape.resource.segment: shape for shape in shapes.values() if shape.resource.top}
            for version, shapes in self.shapes.items()
        }
        self._below = {
            version: {
                (shape.parent_segment, shape.resource.segment): shape
                for shape in shapes.values()
                if shape.resource.parent
            }
            for version, shapes in self.shapes.items()
        }

    async def answer(self, request: Request) -> Answer:
        """Lets a request in and has its method answer it."""
        first, _, rest = request.path[1:].partition("/")
        version = self._versions.get(first)
        prefixed = version is not None
        if version is None:
            if first[:1] == "v" and first[1:].isdigit():
                message = f"There is no API version {first}; see /versions"
                raise NotFound(message)
            version, rest = self._chosen(request), request.path[1:]
        base_url = self.base_url or request.base_url
        target = self._target(version, rest, prefixed=prefixed)
        request.route = target.route
        request.names = target.shape.names
        self._check_life(version, request, base_url)
        allowed = self._allowed(target)
        if request.method == "OPTIONS":
            return _options(allowed)
        caller = await self._let_in(request)
        if request.method not in allowed:
            message = f"{request.method} is not allowed here; {', '.join(allowed)} are"
            raise MethodNotAllowed(message, allow=", ".join(allowed))
        accepted = _accepted(request, version)
        self._check_scope(caller, target.shape.resource, request.method)
        call = Call(
            request=request,
            caller=caller,
            shape=target.shape,
            performer=self.performer,
            content_type=accepted.content_type,
            base_url=base_url,
            item_id=target.item_id,
            parent_id=target.parent_id,
        )
        handler = (_COLLECTION if target.item_id is None else _ITEM)[request.method]
        answer = await handler(call)
        if answer.status == 304:  # noqa: PLR2004
            await self.limits.give_back(_bucket(request))
        return answer

    def _chosen(self, request: Request) -> Version:
        """What an address without a version means: Accept, API-Version or ?version says, else the default."""
        field = request.headers.get(b"accept")
        named = negotiation.accepted(field).version if field is not None else None
        if named is not None:
            return self._numbered(str(named), NotAcceptable("Accept names an API version that is not served"))
        if b"api-version" in request.headers:
            day = request.headers[b"api-version"].decode("latin-1").strip()
            version = self.lifecycle.at(day) if len(day) == len("2026-01-01") else None
            if version is None:
                message = "API-Version has to be a date on which there was a version, such as 2026-11-20"
                raise Malformed(message)
            return version
        asked = request.query().get("version")
        if asked is not None:
            return self._numbered(asked, Malformed("version names no API version; see /versions"))
        return self.lifecycle.default()

    def _numbered(self, number: str, unknown: Malformed | NotAcceptable) -> Version:
        version = self._versions.get(f"v{number.removeprefix('v')}")
        if version is None:
            raise unknown
        return version

    def _target(self, version: Version, path: str, *, prefixed: bool) -> Target:
        """A dict look-up on the segments: resources are few and at most two levels deep."""
        parts = path.split("/")
        root = f"/{version.name}" if prefixed else ""
        shape = self._top[version].get(parts[0])
        if shape is not None and len(parts) == 1:
            return Target(shape, f"{root}/{parts[0]}", None, None)
        if shape is not None and len(parts) == 2 and parts[1]:  # noqa: PLR2004
            return Target(shape, f"{root}/{parts[0]}/{{id}}", parts[1], None)
        if 3 <= len(parts) <= 4 and parts[1] and parts[-1]:  # noqa: PLR2004
            below = self._below[version].get((parts[0], parts[2]))
            if below is not None:
                route = f"{root}/{parts[0]}/{{id}}/{parts[2]}" + ("/{id}" if len(parts) == 4 else "")  # noqa: PLR2004
                return Target(below, route, parts[3] if len(parts) == 4 else None, parts[1])  # noqa: PLR2004
        message = "There is nothing at this path"
        raise NotFound(message)

    def _check_life(self, version: Version, request: Request, base_url: str) -> None:
        request.version_headers = self.lifecycle.headers(version, base_url)
        if request.version_headers and self.lifecycle.phase(version) == "retired":
            message = f"API version {version.name} was retired; see /versions"
            raise VersionRetired(message)

    def _allowed(self, target: Target) -> tuple[str, ...]:
        resource = target.shape.resource
        return resource.collection_methods if target.item_id is None else resource.item_methods

    async def _let_in(self, request: Request) -> Caller:
        """Who calls, within the rate: a key's own, or the address's for whoever shows no valid key."""
        try:
            request.caller = caller = await self.doorkeeper.caller(request.headers.get(b"authorization"))
        except Unauthenticated:
            await self._draw(request)
            raise
        await self._draw(request)
        return caller

    async def _draw(self, request: Request) -> None:
        request.verdict = verdict = await self.limits.take(_bucket(request))
        if not verdict.allowed:
            raise RateLimited(
                f"More than {self.limits.limit.requests} requests in {self.limits.limit.seconds} s",
                retry_after=verdict.reset,
            )

    def _check_scope(self, caller: Caller, resource: Resource, method: str) -> None:
        caller.require(resource.read_scope if method in _SAFE else resource.write_scope)
        if caller.user_id is not None and (
            resource.user_keys == "none" or (resource.user_keys == "read" and method not in _SAFE)
        ):
            caller.forbid_user_keys()
        if caller.user_id is not None and resource.record.kind == "user" and method == "POST":
            caller.forbid_user_keys()


def _accepted(request: Request, version: Version) -> Accepted:
    field = request.headers.get(b"accept")
    if field is None:
        return _ANY
    found = negotiation.accepted(field)
    if found.version is not None and found.version != version.number:
        message = f"This address is of version {version.number}; Accept names version {found.version}"
        raise NotAcceptable(message)
    return found


def _bucket(request: Request) -> str:
    return request.caller.key_id if request.caller else request.client


def _options(allowed: tuple[str, ...]) -> Answer:
    headers = [(b"allow", ", ".join(allowed).encode()), (b"cache-control", b"no-store")]
    if "PATCH" in allowed:
        headers.append((b"accept-patch", b"application/merge-patch+json, application/json"))
    return Answer(204, headers, b"")


def rate_headers(limit: Limit, verdict: Verdict) -> list[tuple[bytes, bytes]]:
    """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers)."""
    return [
        (b"ratelimit-policy", b'"default";q=%d;w=%d' % limit),
        (b"ratelimit", b'"default";r=%d;t=%d' % (verdict.remaining, verdict.reset)),
    ]
