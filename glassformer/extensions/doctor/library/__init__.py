"""The doctor: is a checkpoint healthy? `examination.examine` runs all tests; `watch` does while a model trains."""

from glassformer.extensions.doctor.library.watching import watch

__all__ = ["watch"]
