"""The things tradepost is about, and their rules. Pure: no I/O, no clock, nothing of HTTP."""
