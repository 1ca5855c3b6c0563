"""The OpenAPI document of a version, made from the shapes that also serve its requests."""
