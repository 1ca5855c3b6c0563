"""The command `tradepost`: one file for each subcommand."""
