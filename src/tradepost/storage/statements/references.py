"""The references that other systems use for entities imported from them."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement, in_list
from tradepost.storage.tables import references

KNOWN = Statement(
    "those of these references that were imported before",
    select(references.c.reference).where(
        references.c.kind == bindparam("kind"), in_list(references.c.reference, "references")
    ),
)

OF = Statement(
    "the references of these entities in the system they came from",
    select(references.c.entity_id, references.c.reference).where(
        references.c.kind == bindparam("kind"), in_list(references.c.entity_id, "ids")
    ),
)

ADD = Statement("stores a reference", references.insert())
