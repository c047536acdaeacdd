"""Checkpoint folders: validated loading, atomic saving."""
