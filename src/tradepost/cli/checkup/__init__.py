"""What `tradepost doctor` looks at: each check is a function that yields its findings."""
