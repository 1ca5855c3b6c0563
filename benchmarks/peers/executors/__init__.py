"""The same queries on the same data in memory, by other ways of executing them."""
