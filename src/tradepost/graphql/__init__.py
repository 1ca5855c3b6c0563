"""The GraphQL surface: the schema bound to the house, its execution, and its ways in: HTTP and sockets."""
