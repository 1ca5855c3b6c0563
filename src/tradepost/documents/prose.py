"""Prose: the subset of CommonMark in docstrings and descriptions, as HTML.

These are paragraphs, `code`, and headings, which divide a text into sections. Anything else is escaped.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

ALTERNATIVE = " | "

_CODE = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Section:
    """A heading and the text below it."""

    anchor: str
    heading: str
    text: str


def line(text: str) -> Markup:
    """One line of prose."""
    return Markup(_CODE.sub(lambda match: f"<code>{match[1]}</code>", str(escape(text))))  # noqa: S704 (escaped)


def paragraphs(text: str) -> Markup:
    """Prose with blank lines between its paragraphs."""
    parts = [part.replace("\n", " ").strip() for part in text.split("\n\n")]
    return Markup("\n").join(Markup("<p>{}</p>").format(line(part)) for part in parts if part)


def sections(text: str) -> tuple[str, list[Section]]:
    """The text before the first heading, and the sections."""
    lead, *rest = _HEADING.split(text)
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return lead.strip(), [Section(anchor(heading), heading, body.strip()) for heading, body in pairs]


def pretty(value: Any) -> str:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def alternatives(text: str) -> Markup:
    """The alternatives of a type; a line never breaks within one."""
    parts = [Markup('<span class="one">{}</span>').format(part) for part in text.split(ALTERNATIVE)]
    return Markup(" | ").join(parts)


def anchor(heading: str) -> str:
    """`Line items` → `line-items`."""
    return _NOT_IN_ANCHORS.sub("-", heading.lower()).strip("-")
