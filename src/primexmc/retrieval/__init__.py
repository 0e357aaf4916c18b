"""Vector -> labels."""
