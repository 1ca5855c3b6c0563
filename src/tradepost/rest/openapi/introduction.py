"""The introduction of the document: the rules that hold for the whole API, in CommonMark."""

from pathlib import Path
from string import Template

from tradepost.http.request import MAX_BODY
from tradepost.rest.openapi.words import counted, roughly
from tradepost.rest.pages import DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET
from tradepost.settings import Settings


def introduction(settings: Settings) -> str:
    """The text, with the limits of this service."""
    text = Path(__file__).with_name("introduction.md").read_text("utf-8")
    limits = {
        "default": DEFAULT_LIMIT,
        "most": MAX_LIMIT,
        "offset": f"{MAX_OFFSET:,}",
        "body": MAX_BODY >> 20,
        "timeout": counted(settings.webhook_timeout, "second"),
        "retries": counted(len(settings.webhook_schedule), "time"),
        "retry_span": roughly(sum(settings.webhook_schedule)),
    }
    return Template(text).substitute(limits)
