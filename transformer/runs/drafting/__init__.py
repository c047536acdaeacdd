"""Drafts of outputs, and the check that makes them the model's own."""
