"""How Alembic writes what is pending: as one SQL script, which our own drivers run in one transaction."""

from alembic import context

from tradepost.storage.tables import metadata

context.configure(
    dialect_name=context.config.attributes["dialect"],
    target_metadata=metadata,
    literal_binds=True,
    transactional_ddl=False,  # whoever runs the script opens the transaction
    as_sql=True,
    output_buffer=context.config.attributes["script"],
)
context.run_migrations()
