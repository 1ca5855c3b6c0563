"""A receiver of webhooks in Python's standard library alone."""
