"""What training makes small: one idea a file."""
