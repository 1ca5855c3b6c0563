"""A dictionary that forgets its oldest entries."""

from typing import TypeVar

V = TypeVar("V")


class BoundedDict(dict[str, V]):
    """Holds the `most` entries that were set last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: str, value: V) -> None:
        self.pop(key, None)
        if len(self) >= self._most:
            del self[next(iter(self))]
        super().__setitem__(key, value)
