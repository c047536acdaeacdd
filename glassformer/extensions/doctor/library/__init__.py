"""The doctor: diagnostic tests for checkpoints, and for models in training."""

from glassformer.extensions.doctor.library.watching import watch

__all__ = ["watch"]
