"""Alembic's environment: it writes the missing migrations as one SQL script, which our own drivers run."""

from alembic import context

from tradepost.storage.tables import metadata

context.configure(
    dialect_name=context.config.attributes["dialect"],
    target_metadata=metadata,
    literal_binds=True,
    transactional_ddl=False,  # the driver that runs the script opens the transaction
    as_sql=True,
    output_buffer=context.config.attributes["script"],
)
context.run_migrations()
