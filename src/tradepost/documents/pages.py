"""HTML pages from templates: one inline style, scripts only at /graphql, and no external resources."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from tradepost.documents import prose

_TEMPLATES = Path(__file__).with_name("templates")
_NOTHING = (
    "default-src 'none'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


def render(template: str, **values: Any) -> str:
    """Renders a page. Values are escaped; prose may contain `code` and paragraphs."""
    page: str = _environment().get_template(template).render(style=_style(), **values)
    return page


def headers(*more: str, styles: str = "") -> tuple[tuple[bytes, bytes], ...]:
    """The header fields that confine a page: it has its own style, and cannot load, send or be framed.

    A page that needs `more` passes the directives, and further sources of `styles`.
    """
    policy = "; ".join([*_NOTHING, f"style-src 'sha256-{_digest()}' {styles}".strip(), *more])
    return (
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    )


@cache
def _digest() -> str:
    return base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()


@cache
def _style() -> str:
    return (_TEMPLATES / "style.css").read_text("utf-8")


@cache
def _environment() -> Any:
    # Loaded with the first page, so that the service starts faster.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "line": prose.line,
        "paragraphs": prose.paragraphs,
        "pretty": prose.pretty,
        "alternatives": prose.alternatives,
    }
    return environment
