"""What if: changes inside the model, comparing runs, what matters, what goes wrong."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="what_if",
    changes="glassformer.extensions.what_if.interventions:KINDS",
    blocks="glassformer.extensions.what_if.blocks:BLOCKS",
)
