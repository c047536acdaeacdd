"""Parameters of a checkpoint in numbers."""
