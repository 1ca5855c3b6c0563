"""The GraphQL surface. Its place in the house; the schema, the executor and the socket live here."""
