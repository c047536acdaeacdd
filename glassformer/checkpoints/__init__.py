"""The page Checkpoints: card, scores, training, and what else was found."""
