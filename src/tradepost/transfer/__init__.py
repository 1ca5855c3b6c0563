"""Records in files: read and judged by the rules of the API; written so that they can be read again."""
