"""GraphQL over HTTP: https://graphql.github.io/graphql-over-http/draft/, both of its media types.

A request that cannot be read as GraphQL has the same status in both. For one that was read,
`application/graphql-response+json` says by its status whether it was executed; `application/json` is 200.
"""

from collections.abc import Callable
from functools import lru_cache

from tradepost.access import idempotency
from tradepost.access.caller import Caller
from tradepost.access.idempotency import Codec, IdempotentRequest
from tradepost.graphql.errors import BAD_USER_INPUT, Refused, refusal, refused
from tradepost.graphql.request import GraphQLRequest
from tradepost.graphql.surface import GraphQL, Prepared, Session
from tradepost.http import conditional
from tradepost.http.accept import media_ranges, preference
from tradepost.http.access_control import AccessControl, Admission
from tradepost.http.answers import NO_CACHE, Answer, encode, hash_tag
from tradepost.http.exchange import Exchange, Handler, expected_problem
from tradepost.http.request import Request
from tradepost.problems import MethodNotAllowed, NotAcceptable, UnsupportedMediaType

ROUTE = "/graphql"
_ALLOWED = "GET, HEAD, POST, OPTIONS"
_JSON = b"application/json"
_RESPONSE = b"application/graphql-response+json"
_HTML = b"text/html"
_VARY = (b"vary", b"Accept, Authorization")
_NO_STORE = (b"cache-control", b"no-store")
_NO_COST = {"cost": {"complexity": 0, "depth": 0, "statements": 0}}
_BAD_REQUEST = 400
_NOT_MODIFIED = 304


class Endpoint:
    """`/graphql` over HTTP. A browser that opens it gets `page`, if there is one."""

    def __init__(self, graphql: GraphQL, access_control: AccessControl, page: Handler | None) -> None:
        self._graphql = graphql
        self._access_control = access_control
        self._page = page

    async def answer(self, request: Request) -> Exchange:
        """The answer to a request, whatever it is; raises nothing but `Disconnected`."""
        if request.method == "OPTIONS":
            return Exchange(Answer(204, [(b"allow", _ALLOWED.encode()), _NO_STORE], b""), ROUTE)
        accept = request.headers.get(b"accept", b"*/*")
        safe = request.method in ("GET", "HEAD")
        if (
            safe
            and self._page is not None
            and not request.scope["query_string"]
            and _prefers(accept) == _HTML
        ):
            return await self._page(request)
        content_type = _prefers(accept, html=False)
        admission = await self._access_control.admit(request)
        try:
            prepared, session = await self._prepared(request, admission, content_type)
            admission = await self._access_control.draw(admission, prepared.cost - 1)
            admission.admitted()
            answer = await self._answered(request, prepared, session, content_type)
            if answer.status == _NOT_MODIFIED:
                admission = await self._access_control.give_back(admission, prepared.cost)
        except Refused as refusal:
            answer = _refusal(refusal, content_type, read=True)
        except Exception as failure:  # noqa: BLE001 (each has its answer; an unexpected one is logged)
            problem = expected_problem(failure, request)
            answer = _refusal(refused(problem, request.id), content_type or _JSON, read=False)
        return Exchange(answer, ROUTE, admission)

    async def _prepared(
        self, request: Request, admission: Admission, content_type: bytes
    ) -> tuple[Prepared, Session]:
        """The operation of a request, ready to run.

        Raises `Problem` for a request that cannot be read as GraphQL, and `Refused` for a request error.
        """
        caller = admission.admitted()
        if not content_type:
            message = f"The answer is {_RESPONSE.decode()} or {_JSON.decode()}; accept one of them"
            raise NotAcceptable(message)
        graphql_request, body = await _read(request)
        prepared = await self._graphql.prepare(graphql_request, caller)
        kind = prepared.operation.kind
        if kind != "query":
            _check_method(request, kind)
        session = Session(caller, request.id, use=request.use)
        if kind == "mutation":
            session.source, session.traceparent = request.base_url, request.traceparent
            if b"idempotency-key" in request.headers:
                session.once = self._once(request, caller, body)
        return prepared, session

    async def _answered(
        self, request: Request, prepared: Prepared, session: Session, content_type: bytes
    ) -> Answer:
        body, succeeded = await self._graphql.run(prepared, session)
        kind = (b"content-type", content_type + b"; charset=utf-8")
        if request.method == "POST":
            replayed = [(b"idempotency-replayed", b"true")] if session.replayed else []
            return Answer(200, [kind, _VARY, _NO_STORE, *replayed], body)
        if not succeeded:
            return Answer(200, [kind, _VARY, _NO_STORE], body)
        tag = hash_tag(body)
        headers = [_VARY, (b"etag", tag), NO_CACHE]
        if conditional.not_modified(request.headers, tag):
            return Answer(304, headers, b"")
        return Answer(200, [kind, *headers], body)

    def _once(
        self, request: Request, caller: Caller, body: bytes
    ) -> Callable[[int], IdempotentRequest[bytes]]:
        """The key is that of the mutation's first field; each further one, a transaction too, has its own."""
        key = idempotency.parse_key(request.headers[b"idempotency-key"])
        fingerprint = idempotency.fingerprint((b"POST", ROUTE.encode(), body))
        now_ms = self._graphql.performer.clock.now_ms()
        return lambda n: IdempotentRequest(
            caller=caller,
            key=f"{key}\n{n}" if n else key,
            fingerprint=fingerprint,
            codec=_FIELD_CODEC,
            now_ms=now_ms,
        )


# How the answer of a mutation's field is stored for its idempotency key: as the JSON that it is.
_FIELD_CODEC: Codec[bytes] = Codec(bytes, bytes, lambda _: False)


def _check_method(request: Request, kind: str) -> None:
    """Raises `MethodNotAllowed` for a mutation by GET, and `Refused` for a subscription over HTTP."""
    if request.method != "POST":
        message = f"{kind.capitalize()}s require POST"
        raise MethodNotAllowed(message, allow="POST")
    if kind == "subscription":
        message = "Subscriptions are served over WebSocket, with the protocol graphql-transport-ws"
        raise refusal(BAD_USER_INPUT, message)


async def _read(request: Request) -> tuple[GraphQLRequest, bytes]:
    """The GraphQL request in an HTTP request, and its body; raises `Problem` if there is none."""
    if request.method in ("GET", "HEAD"):
        return GraphQLRequest.from_parameters(request.query()), b""
    if request.method != "POST":
        message = f"{request.method} is not allowed here; {_ALLOWED} are"
        raise MethodNotAllowed(message, allow=_ALLOWED)
    kind, _, parameters = request.headers.get(b"content-type", b"").lower().partition(b";")
    charset = parameters.partition(b"charset=")[2].strip(b' "')
    if kind.strip() != _JSON or charset not in (b"", b"utf-8", b"utf8"):
        message = "Content-Type must be application/json, in UTF-8"
        raise UnsupportedMediaType(message, accept="application/json")
    body = await request.body()
    return GraphQLRequest.from_body(body), body


def _refusal(why: Refused, content_type: bytes, *, read: bool) -> Answer:
    status = 200 if read and content_type == _JSON and why.status == _BAD_REQUEST else why.status
    headers = [(b"content-type", content_type + b"; charset=utf-8"), _NO_STORE, *why.headers]
    return Answer(status, headers, encode({"errors": why.errors, "extensions": _NO_COST}))


@lru_cache(512)
def _prefers(accept: bytes, *, html: bool = True) -> bytes:
    """The media type that the client prefers (RFC 9110, 12.5.1); empty if it accepts none.

    Of equal preferences, that is JSON unless the newer type is named.
    """
    offered = [_JSON, _RESPONSE, *([_HTML] if html else [])]
    ranges = media_ranges(accept)
    named = {kind for kind, _ in ranges}
    best, preferred = (0.0, False), b""
    for kind in offered:
        rank = (preference(kind, ranges)[0], kind == _RESPONSE and kind in named)
        if rank[0] and rank > best:
            best, preferred = rank, kind
    return preferred
