"""Charts of parameters."""
