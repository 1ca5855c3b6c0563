"""Statements beyond those that every record has, by their subject."""
