"""Charts of corpus runs."""
