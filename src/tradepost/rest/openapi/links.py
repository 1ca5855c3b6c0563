"""The links of a new item: the operations on it and on the collections below it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tradepost.rest.openapi.address import ResourceAddress
from tradepost.rest.openapi.schemas import Json
from tradepost.rest.shape import Shape


def links(collection: ResourceAddress, shapes: Sequence[Shape]) -> Iterator[tuple[str, Json]]:
    """The links of an item that a POST to the collection creates, by name."""
    parent = collection.parent_parameter if collection.under else ""
    above = {parent: f"$request.path.{parent}"} if parent else {}
    item = replace(collection, item=True)
    for method, name in (("GET", "get"), ("PUT", "replace"), ("PATCH", "update"), ("DELETE", "delete")):
        if method in item.methods:
            yield _link(f"{name}{item.noun}", {**above, "id": "$response.body#/id"})
    for below in _below(collection.shape, shapes):
        for method, name in (("GET", f"list{below.nouns}"), ("POST", f"create{below.noun}")):
            if method in below.methods:
                yield _link(name, {below.parent_parameter: "$response.body#/id"})


def _below(shape: Shape, shapes: Sequence[Shape]) -> list[ResourceAddress]:
    """The collections below an item."""
    return [
        ResourceAddress(each, under=True, item=False)
        for each in shapes
        if each.resource.parent and each.resource.parent.parent is shape.record
    ]


def _link(operation: str, values: Json) -> tuple[str, Json]:
    return operation, {"operationId": operation, "parameters": values}
