"""The OpenAPI document of a version, made from the same shapes that answer its requests."""
