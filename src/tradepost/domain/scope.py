"""The scopes that an API key can have."""

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
    """All scopes that a list of scopes grants: `admin` grants every one."""
    listed = frozenset(scopes)
    return frozenset(SCOPES) if "admin" in listed else listed
