"""The GraphQL peer in Python: Strawberry on the async ORM of SQLAlchemy 2, over the tables of the REST peer.

As its documentation has it for production: an ASGI application on uvicorn, a DataLoader for every relation,
ParserCache and ValidationCache, and answers encoded by msgspec in place of the standard library. A session
per request; an API key that was looked up is remembered as long as tradepost does it. It has the fields that
are measured, and no rate limit, limits of documents or request log.
"""
