"""The way out: requests to addresses that strangers chose, which cannot be turned against this network."""
