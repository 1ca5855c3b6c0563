"""The records of tradepost and their rules. Pure: no I/O, no clock, no HTTP."""
