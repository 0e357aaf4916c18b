"""Many texts from a file, their labels into a file."""
