"""Outgoing requests, to addresses that strangers choose but cannot turn against this network."""
