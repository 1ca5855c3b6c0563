"""What can be done. An action gets a change in progress; it opens and commits nothing itself."""
