"""The header fields of responses, described in `headers.json`, and which responses have which."""

from pathlib import Path

import msgspec

from tradepost.rest.openapi.schemas import Json

HEADERS: dict[str, Json] = msgspec.json.decode(Path(__file__).with_name("headers.json").read_bytes())

PAGE = ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy")
EVERY = ("X-Request-Id", "Server-Timing")
LIFE = ("Deprecated", "Deprecation", "Sunset", "Link")
RATE = ("RateLimit-Policy", "RateLimit")
SHOWN = ("ETag", "Vary", "Cache-Control")
