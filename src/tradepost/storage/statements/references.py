"""What foreign systems call the entities imported from them."""

from sqlalchemy import bindparam, select

from tradepost.storage.statement import Statement, among
from tradepost.storage.tables import references

KNOWN = Statement(
    "which of these references were imported before",
    select(references.c.reference).where(
        references.c.kind == bindparam("kind"), among(references.c.reference, "references")
    ),
)

ADD = Statement("remembers a reference", references.insert())
