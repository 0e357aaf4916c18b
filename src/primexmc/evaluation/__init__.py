"""Labels -> numbers."""
