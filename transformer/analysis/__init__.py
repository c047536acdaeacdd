"""Analyses of models and traces: pure functions over arrays."""
