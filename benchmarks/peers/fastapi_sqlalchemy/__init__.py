"""The peer: the same routes as an idiomatic FastAPI service on the async ORM of SQLAlchemy 2.

Written as one would for production: pydantic models for bodies and answers, a session per request, eager
loading where lines are shown, row locks where stock is taken. It has no rate limit, ETags or request log.
"""
