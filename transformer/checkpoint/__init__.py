"""Checkpoint folders: reading checks everything, writing is all or nothing."""
