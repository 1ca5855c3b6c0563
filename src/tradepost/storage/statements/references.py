"""What foreign systems call the entities imported from them."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import references

KNOWN = Statement(
    "which of these references were imported before",
    select(references.c.reference).where(
        references.c.kind == bindparam("kind"), in_list(references.c.reference, "references")
    ),
)

OF = Statement(
    "what these entities were called where they came from",
    select(references.c.entity_id, references.c.reference).where(
        references.c.kind == bindparam("kind"), in_list(references.c.entity_id, "ids")
    ),
)

ADD = Statement("remembers a reference", references.insert())
