"""What if: changes inside the model, comparing runs, what matters, what goes wrong."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="what_if",
    names={"ZeroHead": "glassformer.extensions.what_if.interventions:ZeroHead"},
    pages="glassformer.extensions.what_if.pages:PAGES",
    changes="glassformer.extensions.what_if.interventions:KINDS",
    blocks="glassformer.extensions.what_if.blocks:BLOCKS",
)
