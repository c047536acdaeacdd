"""Training: training models, watching trainings, snapshots over training."""

from transformer.extensions import Extension

EXTENSION = Extension(name="training", server="glassformer.extensions.training.server_part:SERVER")
