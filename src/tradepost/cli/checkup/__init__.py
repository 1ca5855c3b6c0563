"""The checks of `tradepost doctor`: each is a function that yields its findings."""
