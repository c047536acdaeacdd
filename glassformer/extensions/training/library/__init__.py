"""Training: from sentence pairs to a checkpoint folder."""
