"""What an API key may be allowed to do."""

import typing
from collections.abc import Iterable
from typing import Literal

Scope = Literal[
    "users:read",
    "users:write",
    "products:read",
    "products:write",
    "orders:read",
    "orders:write",
    "webhooks:read",
    "webhooks:write",
    "events:read",
    "keys:write",
    "introspection",
    "admin",
]

SCOPES: tuple[str, ...] = typing.get_args(Scope)


def granted(scopes: Iterable[str]) -> frozenset[str]:
    """All that a list of scopes allows: `admin` is every one."""
    held = frozenset(scopes)
    return frozenset(SCOPES) if "admin" in held else held
