"""The header fields of answers: what each says, and which answers carry which."""

from tradepost.rest.openapi.schemas import Json

_TEXT: Json = {"type": "string"}


def _field(description: str, example: str | int, schema: Json = _TEXT, *, always: bool = False) -> Json:
    required = {"required": True} if always else {}
    return {"description": description, **required, "schema": schema, "example": example}


HEADERS: dict[str, Json] = {
    "X-Request-Id": _field(
        "The id of the request: the one it was sent with, else a new one. Quote it when you ask for help.",
        "5d0c2f9a1b7e-1a2b",
        always=True,
    ),
    "Server-Timing": _field(
        "Milliseconds it took: in the database, and in all.", "db;dur=0.21, total;dur=0.48", always=True
    ),
    "RateLimit-Policy": _field(
        "The limit: `q` requests in `w` seconds (draft-ietf-httpapi-ratelimit-headers).",
        '"default";q=1000;w=1',
    ),
    "RateLimit": _field(
        "What is left: `r` requests; the limit is whole again, or enough for one more, in `t` seconds.",
        '"default";r=999;t=1',
    ),
    "Retry-After": _field("Seconds to wait before trying again.", 1, {"type": "integer"}, always=True),
    "Deprecated": _field("`true` once the version is deprecated.", "true", {"const": "true", **_TEXT}),
    "Deprecation": _field(
        "Since when the version is deprecated: an HTTP-date, or `@<unix time>` where the service is set to "
        "RFC 9745.",
        "Fri, 01 Jan 2027 00:00:00 GMT",
    ),
    "Sunset": _field(
        "When the version is retired (RFC 8594); from then on it answers 410.",
        "Fri, 31 Dec 2027 23:59:59 GMT",
    ),
    "Link": _field(
        "Links (RFC 8288), absolute. On lists `next`, `first`, and `prev` where pages are counted; on a "
        "deprecated version `deprecation`, where migration is explained, and `successor-version`.",
        '<https://api.example.com/v1/products?cursor=WyI5>; rel="next"',
    ),
    "ETag": _field(
        "The state of what is shown; strong. It goes into `If-None-Match` and `If-Match`.",
        '"7.3fe2"',
        always=True,
    ),
    "Vary": _field("The request's fields that the answer depends on.", "Accept, Authorization", always=True),
    "Cache-Control": _field(
        "Whether it may be kept: `no-cache` may be, and is to be checked by its ETag; `no-store` may not.",
        "private, no-cache",
        always=True,
    ),
    "Location": _field(
        "The path of the new item.", "/v1/products/019aa0c1-8d2e-7000-8000-000000000000", always=True
    ),
    "Content-Location": _field(
        "The path of the item that the body shows.",
        "/v1/products/019aa0c1-8d2e-7000-8000-000000000000",
        always=True,
    ),
    "Idempotency-Replayed": _field(
        "`true` if this is the answer that an earlier request with the same key was given.",
        "true",
        {"const": "true", **_TEXT},
    ),
    "Preference-Applied": _field("The preference that was followed.", "return=minimal", always=True),
    "Allow": _field("The methods the address takes.", "GET, POST, HEAD, OPTIONS", always=True),
    "Accept": _field("The media types the address takes.", "application/json", always=True),
    "Accept-Patch": _field(
        "The media types PATCH takes (RFC 5789).",
        "application/merge-patch+json, application/json",
        always=True,
    ),
    "WWW-Authenticate": _field(
        "What to authenticate with (RFC 6750); `error` and `scope` say what is wrong with the key shown.",
        'Bearer realm="tradepost", error="invalid_token"',
    ),
    "Content-Security-Policy": _field(
        "What a page may load: its own style, and nothing else.",
        "default-src 'none'; …",
    ),
    "X-Content-Type-Options": _field("A page is what it says it is.", "nosniff"),
    "Referrer-Policy": _field("A page does not tell where its reader came from.", "no-referrer"),
}

PAGE = ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy")
EVERY = ("X-Request-Id", "Server-Timing")
LIFE = ("Deprecated", "Deprecation", "Sunset", "Link")
RATE = ("RateLimit-Policy", "RateLimit")
SHOWN = ("ETag", "Vary", "Cache-Control")
