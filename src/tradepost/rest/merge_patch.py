"""JSON Merge Patch (RFC 7396)."""

from typing import Any


def merge_patch(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396: null removes, objects merge, all else replaces."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            below = merged.get(name)
            merged[name] = merge_patch(below if isinstance(below, dict) else {}, value)
        else:
            merged[name] = value
    return merged
