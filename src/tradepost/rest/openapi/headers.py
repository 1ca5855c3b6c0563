"""The header fields of responses, and which responses have them."""

from tradepost.rest.openapi.schemas import Json

_TEXT: Json = {"type": "string"}


def _field(description: str, example: str | int, schema: Json = _TEXT, *, always: bool = False) -> Json:
    required = {"required": True} if always else {}
    return {"description": description, **required, "schema": schema, "example": example}


HEADERS: dict[str, Json] = {
    "X-Request-Id": _field(
        "Id of the request: the one it was sent with, otherwise a new one. Quote it when you ask for help.",
        "5d0c2f9a1b7e-1a2b",
        always=True,
    ),
    "Server-Timing": _field(
        "Duration in milliseconds: in the database, and in total.", "db;dur=0.21, total;dur=0.48", always=True
    ),
    "RateLimit-Policy": _field(
        "The limit: `q` requests in `w` seconds (draft-ietf-httpapi-ratelimit-headers).",
        '"default";q=1000;w=1',
    ),
    "RateLimit": _field(
        "Remaining requests (`r`), and seconds (`t`) until the limit is restored or, after a 429, until it "
        "allows another request.",
        '"default";r=999;t=1',
    ),
    "Retry-After": _field("Seconds to wait before trying again.", 1, {"type": "integer"}, always=True),
    "Deprecated": _field("`true` once the version is deprecated.", "true", {"const": "true", **_TEXT}),
    "Deprecation": _field(
        "When the version was deprecated: an HTTP-date, or `@<unix time>` if the service is configured for "
        "RFC 9745.",
        "Fri, 01 Jan 2027 00:00:00 GMT",
    ),
    "Sunset": _field(
        "When the version is retired (RFC 8594); after that it answers 410.",
        "Fri, 31 Dec 2027 23:59:59 GMT",
    ),
    "Link": _field(
        "Absolute links (RFC 8288). On lists: `next`, `first` and, with `offset`, `prev`. On a deprecated "
        "version: `deprecation`, which explains the migration, and `successor-version`.",
        '<https://api.example.com/v1/products?cursor=WyI5>; rel="next"',
    ),
    "ETag": _field(
        "Strong validator of the current state, for `If-None-Match` and `If-Match`.",
        '"7.3fe2"',
        always=True,
    ),
    "Vary": _field(
        "The request header fields that the response depends on.", "Accept, Authorization", always=True
    ),
    "Cache-Control": _field(
        "`no-cache` can be stored but must be revalidated by its ETag; `no-store` must not be stored.",
        "private, no-cache",
        always=True,
    ),
    "Location": _field(
        "Path of the new item.", "/v1/products/019aa0c1-8d2e-7000-8000-000000000000", always=True
    ),
    "Content-Location": _field(
        "Path of the item in the body.",
        "/v1/products/019aa0c1-8d2e-7000-8000-000000000000",
        always=True,
    ),
    "Idempotency-Replayed": _field(
        "`true` if this is the response to an earlier request with the same key.",
        "true",
        {"const": "true", **_TEXT},
    ),
    "Preference-Applied": _field("The preference that was applied.", "return=minimal", always=True),
    "Allow": _field("The methods of this address.", "GET, POST, HEAD, OPTIONS", always=True),
    "Accept": _field("The media types that this address accepts.", "application/json", always=True),
    "Accept-Patch": _field(
        "The media types that PATCH accepts (RFC 5789).",
        "application/merge-patch+json, application/json",
        always=True,
    ),
    "WWW-Authenticate": _field(
        "How to authenticate (RFC 6750); `error` and `scope` say what is wrong with the key.",
        'Bearer realm="tradepost", error="invalid_token"',
    ),
    "Content-Security-Policy": _field(
        "What a page can load: only its own styles.",
        "default-src 'none'; …",
    ),
    "X-Content-Type-Options": _field("Browsers must not guess another media type.", "nosniff"),
    "Referrer-Policy": _field("Links from a page do not reveal its address.", "no-referrer"),
}

PAGE = ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy")
EVERY = ("X-Request-Id", "Server-Timing")
LIFE = ("Deprecated", "Deprecation", "Sunset", "Link")
RATE = ("RateLimit-Policy", "RateLimit")
SHOWN = ("ETag", "Vary", "Cache-Control")
