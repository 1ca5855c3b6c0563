"""Realistic demo data of any size. The same seed produces the same shop."""
