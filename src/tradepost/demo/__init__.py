"""Believable data of any size, for whoever wants to look around: the same seed makes the same shop."""
