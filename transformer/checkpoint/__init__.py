"""Checkpoint folders: read with suspicion, written all or nothing."""
