"""Types of text with limits on their length, named by their use."""

from typing import Annotated

from msgspec import Meta

Name = Annotated[str, Meta(min_length=1, max_length=200)]
Sku = Annotated[str, Meta(min_length=1, max_length=64)]
Description = Annotated[str, Meta(max_length=10_000)]
Code = Annotated[str, Meta(min_length=1, max_length=20)]
Identifier = Annotated[str, Meta(min_length=1, max_length=64)]
EmailAddress = Annotated[str, Meta(min_length=3, max_length=254)]
