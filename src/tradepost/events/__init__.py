"""Events: their types, the log to which they are appended, and how the log is read."""
