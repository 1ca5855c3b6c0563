"""What the resolvers of one request work with."""

from dataclasses import dataclass, field

from tradepost.access.caller import Caller
from tradepost.graphql.execute import Loads
from tradepost.resource import Resource
from tradepost.storage.database import Reading


@dataclass(slots=True)
class Context:
    """Who asks, what is read with, and what was loaded so far: of one request and no other."""

    caller: Caller
    reading: Reading
    loads: Loads = field(default_factory=Loads)

    def admit(self, resource: Resource) -> None:
        """Raises `Forbidden` unless the caller may read the resource."""
        self.caller.require(resource.read_scope)
        if self.caller.user_id is not None and not resource.is_open_to_user_keys("GET"):
            self.caller.forbid_user_keys()
