"""API versions: which there are, how they differ, and where each is in its life."""
