"""Model trials: losses of model variants on sample texts, and their comparison."""
