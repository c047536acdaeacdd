"""Charts of a training."""
