"""Where the records are kept: one set of statements, two engines."""
