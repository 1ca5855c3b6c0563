"""A running tradepost, read collection by collection over one connection."""

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

PAGE = 200
TIMEOUT = 30.0


class Service:
    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        connection = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = connection(parts.netloc, timeout=TIMEOUT)
        self._path = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}

    def items(self, collection: str) -> Iterator[dict[str, Any]]:
        """Every item, page by page; JSON numbers with decimals arrive as Decimal."""
        cursor: str | None = ""
        while cursor is not None:
            after = f"&cursor={quote(cursor, safe='')}" if cursor else ""
            page = self._get(f"{self._path}{collection}?limit={PAGE}{after}")
            yield from page["items"]
            cursor = page["next"]

    def _get(self, path: str) -> dict[str, Any]:
        """Stops with SystemExit where the service cannot be reached or refuses."""
        try:
            self._connection.request("GET", path, headers=self._headers)
            response = self._connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            sys.exit(f"GET {path}: {error}")
        if response.status != HTTPStatus.OK:
            sys.exit(f"GET {path} answered {response.status}: {body.decode(errors='replace')}")
        page: dict[str, Any] = json.loads(body, parse_float=Decimal)
        return page
