"""Storage of the records: one set of statements for two engines."""
