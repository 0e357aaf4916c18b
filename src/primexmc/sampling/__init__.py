"""Which queries meet which labels."""
