"""Attention maps from elsewhere: arrays of weights and labels, of models that cannot be run here."""
