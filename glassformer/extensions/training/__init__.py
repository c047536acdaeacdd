"""Training: training models, watching trainings, snapshots over training."""

from transformer.extensions import Extension

EXTENSION = Extension(name="training", looks="glassformer.extensions.training.training_look:TrainingLook")
