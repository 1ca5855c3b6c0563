"""The resource-oriented surface: JSON over HTTP, one set of verbs for whatever the catalogue lists."""
