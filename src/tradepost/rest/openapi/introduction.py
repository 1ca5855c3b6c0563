"""The rules that hold everywhere: what the document says of itself, in CommonMark."""

from pathlib import Path
from string import Template

from tradepost.http.request import MAX_BODY
from tradepost.rest.pages import DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET


def introduction() -> str:
    """The text, with the limits there are."""
    text = Path(__file__).with_name("introduction.md").read_text("utf-8")
    limits = {
        "default": DEFAULT_LIMIT,
        "most": MAX_LIMIT,
        "offset": f"{MAX_OFFSET:,}",
        "body": MAX_BODY >> 20,
    }
    return Template(text).substitute(limits)
