"""Problems from before the application."""

import logging
import secrets

import msgspec

_log = logging.getLogger("tradepost.server")

_REASONS = {
    400: ("Bad Request", "malformed-request"),
    408: ("Request Timeout", "request-timeout"),
    431: ("Request Header Fields Too Large", "too-large"),
}


def refusal(status: int, detail: str) -> bytes:
    """A problem from before the application; where it points is relative, for there may be no host."""
    title, kind = _REASONS[status]
    request_id = secrets.token_hex(8)
    problem = {"type": f"/problems/{kind}", "title": title, "status": status, "detail": detail}
    body = msgspec.json.encode(problem | {"instance": "", "errors": []})
    head = (
        f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\n"
        f"x-request-id: {request_id}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    _log.info("refused", extra={"status": status, "detail": detail, "request_id": request_id})
    return head.encode() + body
