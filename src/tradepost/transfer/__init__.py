"""Records in files: imported by the rules of the API, and exported so that they can be imported again."""
