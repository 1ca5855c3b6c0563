"""What the resolvers of one request load: each key once, and together whatever is wanted at the same time.

A resolver awaits `load`. Where it runs alone, the load is made at once. Where resolvers run `together`, each
is stepped until it parks at a load (`stepping.py`); once all of them have parked or ended, one load is made
for each loader, with the keys of all who want something of it, and they are stepped on.
"""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from tradepost.graphql.stepping import PARKED, advanced, parked


class Loader(Protocol):
    """What loads values by their keys, for one request at a time. Equal loaders load the same."""

    def __hash__(self) -> int: ...

    async def fetch(self, context: Any, keys: list[Any]) -> Mapping[Any, Any]:
        """Loads the values of keys in one statement; leaves out keys that have none."""

    @property
    def missing(self) -> Any:
        """The value of a key that `fetch` leaves out."""


class _Load:
    """The keys that one load is to be made of, and why it failed if it did."""

    __slots__ = ("failure", "keys", "loader")

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.keys: dict[Any, None] = {}
        self.failure: Exception | None = None


class _Loaded:
    """What a loader has loaded, and the load that is to be made next."""

    __slots__ = ("next", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}
        self.next: _Load | None = None


@dataclass(slots=True, eq=False)
class Loads:
    """What one request has loaded and wants, never shared with another. Loaders get it as their context."""

    _loaded: dict[Loader, _Loaded] = field(default_factory=dict, init=False)
    _wanted: list[_Loaded] = field(default_factory=list, init=False)
    _gathers: bool = field(default=False, init=False)  # whether loads wait for one another

    async def load(self, loader: Loader, keys: Sequence[Any]) -> list[Any]:
        """The value of each key, or the loader's `missing` if it has none; raises what the loader does."""
        loaded = self._loaded.get(loader)
        if loaded is None:
            loaded = self._loaded[loader] = _Loaded()
        values = loaded.values
        wanted = [key for key in keys if key not in values] if values else keys
        if wanted and self._gathers:
            await self._gathered(loader, loaded, wanted)
        elif wanted:
            await self._made(loader, dict.fromkeys(wanted), values)
        return [values[key] for key in keys]

    async def together(self, resolving: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        """Runs resolvers to their ends; what each returned, or the exception that it raised.

        Raises only what is to end the request: cancellation.
        """
        results: list[Any] = [PARKED] * len(resolving)
        waiting: Sequence[int] = range(len(resolving))
        self._gathers = True
        try:
            while waiting:
                for index in waiting:
                    results[index] = await advanced(resolving[index])
                waiting = [index for index in waiting if results[index] is PARKED]
                await self._make_wanted()
        finally:
            self._gathers = False
            for each in resolving:
                each.close()
        return results

    async def _gathered(self, loader: Loader, loaded: _Loaded, keys: Sequence[Any]) -> None:
        """Waits for the load that all who want something of the loader share."""
        load = loaded.next
        if load is None:
            load = loaded.next = _Load(loader)
            self._wanted.append(loaded)
        load.keys |= dict.fromkeys(keys)
        await parked()
        if load.failure is not None:
            raise load.failure

    async def _make_wanted(self) -> None:
        wanted, self._wanted = self._wanted, []
        for loaded in wanted:
            load, loaded.next = cast("_Load", loaded.next), None
            try:
                await self._made(load.loader, load.keys, loaded.values)
            except Exception as failure:  # noqa: BLE001 (raised by all who wait for it)
                load.failure = failure

    async def _made(self, loader: Loader, keys: dict[Any, None], values: dict[Any, Any]) -> None:
        """Loads keys into `values`."""
        fetched = await loader.fetch(self, list(keys))
        values.update(fetched)
        if len(fetched) < len(keys):
            for key in keys.keys() - fetched.keys():
                values[key] = loader.missing
