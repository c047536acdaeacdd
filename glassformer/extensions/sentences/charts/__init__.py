"""Charts of many sentences."""
