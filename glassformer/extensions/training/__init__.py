"""Training: training models, watching trainings, snapshots over training."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="training",
    sources="glassformer.extensions.training.source:SOURCE",
    parts="ui.attention.film:PART",
    blocks="glassformer.extensions.training.blocks:BLOCKS",
)
