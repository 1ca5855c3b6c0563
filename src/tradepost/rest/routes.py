"""Routes: the catalogue's paths in one version, looked up by their segments.

    orders · orders/{id} · orders/{id}/line-items · orders/{id}/line-items/{id}

A dict look-up is enough: paths are at most two levels deep.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct

from tradepost.access.caller import Permission
from tradepost.domain.record import Record
from tradepost.rest import verbs
from tradepost.rest.shape import Shape
from tradepost.rest.verbs import Handler
from tradepost.versions.changes import Version

COLLECTION: Mapping[str, Handler] = {"GET": verbs.get_list, "HEAD": verbs.get_list, "POST": verbs.post}
ITEM: Mapping[str, Handler] = {
    "GET": verbs.get_item,
    "HEAD": verbs.get_item,
    "PUT": verbs.put,
    "PATCH": verbs.patch,
    "DELETE": verbs.delete,
}


class Verb(NamedTuple):
    """The handler of a method at an address, and the permission that it needs."""

    handler: Handler
    permission: Permission


@dataclass(frozen=True, slots=True)
class Route:
    """An address in a version: the shape of its resource and its methods."""

    shape: Shape
    template: str
    allow: str
    verbs: Mapping[str, Verb]
    error_names: Mapping[str | tuple[str, str], str]
    alternative: Shape | None = None  # a POST creates this if the body has members of its own


class Place(Struct, frozen=True):
    """What a path names: a route, with the ids in it."""

    route: Route
    item_id: str | None
    parent_id: str | None


class Routes:
    """The routes of one version, in `shapes` the shape of each record.

    `announced` tells whether a date in the life of the version is set, so that its answers have headers.
    """

    def __init__(self, version: Version, shapes: Iterable[Shape], *, announced: bool) -> None:
        self.version = version
        self.announced = announced
        self.shapes: dict[type[Record], Shape] = {shape.record: shape for shape in shapes}
        self._collections: dict[tuple[str, ...], Route] = {}
        self._items: dict[tuple[str, ...], Route] = {}
        for shape in self.shapes.values():
            segment = shape.resource.segment
            if shape.resource.top:
                self._add(version, (segment,), shape)
            if shape.resource.parent:
                self._add(version, (shape.parent_segment, segment), shape)

    def begins(self, segment: str) -> bool:
        """Whether a path can begin with this segment."""
        return any(segments[0] == segment for segments in self._collections)

    def find(self, parts: list[str]) -> Place | None:
        """The place that the segments behind the version name; None if there is none."""
        match parts:
            case [collection]:
                route, item_id, parent_id = self._collections.get((collection,)), None, None
            case [_, item_id, *_] if "\x00" in item_id:
                route, item_id, parent_id = None, None, None
            case [collection, item_id] if item_id:
                route, parent_id = self._items.get((collection,)), None
            case [above, parent_id, collection] if parent_id:
                route, item_id = self._collections.get((above, collection)), None
            case [above, parent_id, collection, item_id] if parent_id and item_id:
                route = self._items.get((above, collection))
            case _:
                route, item_id, parent_id = None, None, None
        return None if route is None else Place(route, item_id, parent_id)

    def _add(self, version: Version, segments: tuple[str, ...], shape: Shape) -> None:
        resource = shape.resource
        path = f"/{version.name}/" + "/{id}/".join(segments)
        alternative = self.shapes[resource.alternative] if resource.alternative else None
        self._collections[segments] = _route(
            shape, path, resource.collection_methods, COLLECTION, alternative
        )
        self._items[segments] = _route(shape, path + "/{id}", resource.item_methods, ITEM)


def _route(
    shape: Shape,
    template: str,
    methods: tuple[str, ...],
    handlers: Mapping[str, Handler],
    alternative: Shape | None = None,
) -> Route:
    permissions = shape.resource.permissions
    taken = {method: Verb(handlers[method], permissions[method]) for method in methods if method in handlers}
    names = (alternative.error_names if alternative else {}) | shape.error_names
    return Route(shape, template, ", ".join(methods), taken, names, alternative)
