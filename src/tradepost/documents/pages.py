"""Pages: HTML from templates, with one inline style; nothing from elsewhere, and scripts only at /graphql."""

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


def render(template: str, **shown: Any) -> str:
    """A page. Values are escaped; prose may hold `code` and paragraphs."""
    page: str = _environment().get_template(template).render(style=_style(), **shown)
    return page


def headers(*more: str, styles: str = "") -> tuple[tuple[bytes, bytes], ...]:
    """What keeps a page to itself: its own style applies, and it cannot load, send or be framed.

    A page that needs `more` names the directives, and where `styles` come from beside its own.
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
    # Loaded when the first page is asked for: the service starts without it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "line": prose.line,
        "paragraphs": prose.paragraphs,
        "pretty": prose.pretty,
        "alternatives": prose.alternatives,
    }
    return made
