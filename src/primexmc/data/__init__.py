"""Raw files -> arrays."""
