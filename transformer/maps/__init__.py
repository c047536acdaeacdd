"""Attention maps from anywhere: arrays of weights and labels, of models that nothing here can run."""
