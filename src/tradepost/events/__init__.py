"""What happened: the types there are, the log they are appended to, and how it is read."""
