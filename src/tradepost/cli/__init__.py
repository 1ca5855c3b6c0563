"""The command `tradepost`: one file for each of its words."""
