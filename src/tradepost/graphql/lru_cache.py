"""A cache by text, bounded in bytes, that forgets what was used least recently."""

from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """Values by text, as many as fit into `max_memory` bytes."""

    def __init__(self, max_memory: int) -> None:
        self._bytes_left = max_memory
        self._entries: dict[str, tuple[T, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, text: str) -> T | None:
        """The value of a text, which counts as a use; None if it is not cached."""
        entry = self._entries.pop(text, None)
        if entry is None:
            return None
        self._entries[text] = entry
        return entry[0]

    def put(self, text: str, value: T, size: int) -> None:
        """Caches a value of `size` bytes; drops the values used least recently until there is room."""
        self._bytes_left += self._entries.pop(text, (None, 0))[1] - size
        self._entries[text] = (value, size)
        while self._bytes_left < 0:
            oldest = next(iter(self._entries))
            self._bytes_left += self._entries.pop(oldest)[1]
