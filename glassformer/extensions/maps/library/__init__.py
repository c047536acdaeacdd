"""Given attention maps: weights and labels from any program, without a model."""
