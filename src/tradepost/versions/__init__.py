"""API versions: their differences, and the phase of each."""
