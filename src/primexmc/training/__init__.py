"""Vectors -> better vectors."""
