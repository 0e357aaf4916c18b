"""Methods side by side: the same data, the same test queries, the same measures."""
