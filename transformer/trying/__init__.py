"""What a model does with pairs of texts: losses, variants of it, and what may be said of their differences."""
