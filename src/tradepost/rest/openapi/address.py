"""An address of a resource: its path, its methods, and its name in operations."""

from collections.abc import Iterator
from dataclasses import dataclass

from tradepost.domain.record import camel
from tradepost.rest.openapi.words import one, pascal
from tradepost.rest.shape import Shape


@dataclass(frozen=True)
class ResourceAddress:
    """A collection or an item of a resource, at its own address or `under` its parent's."""

    shape: Shape
    under: bool
    item: bool

    @property
    def parent_parameter(self) -> str:
        parent = self.shape.resource.parent
        return camel(f"{parent.parent.kind}_id") if parent else ""

    @property
    def path(self) -> str:
        shape = self.shape
        above = f"/{shape.parent_segment}/{{{self.parent_parameter}}}" if self.under else ""
        return f"/{shape.version.name}{above}/{shape.resource.segment}" + ("/{id}" if self.item else "")

    @property
    def methods(self) -> tuple[str, ...]:
        resource = self.shape.resource
        return resource.item_methods if self.item else resource.collection_methods

    @property
    def vendor_type(self) -> str:
        """The media type that names the API version."""
        return f"application/vnd.tradepost.v{self.shape.version.number}+json"

    @property
    def noun(self) -> str:
        """`OrderLineItem` below an order, `LineItem` at its own address."""
        return self._above + pascal(self.shape.resource.one)

    @property
    def nouns(self) -> str:
        return self._above + pascal(self.shape.resource.many)

    @property
    def _above(self) -> str:
        parent = self.shape.resource.parent
        return pascal(parent.parent.kind) if self.under and parent else ""

    @property
    def of(self) -> str:
        """` of an order`."""
        parent = self.shape.resource.parent
        return f" of {one(parent.parent)}" if self.under and parent else ""


def addresses(shape: Shape) -> Iterator[ResourceAddress]:
    """The addresses of a resource: a collection and an item, for each place where it is found."""
    for under in (False, True):
        if (shape.resource.parent and under) or (shape.resource.top and not under):
            yield ResourceAddress(shape, under, item=False)
            yield ResourceAddress(shape, under, item=True)
