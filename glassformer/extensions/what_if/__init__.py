"""What if: changes inside the model, comparing runs, what matters, what goes wrong."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="what_if",
    names={"ZeroHead": "transformer.runs.interventions:ZeroHead"},
    pages="glassformer.extensions.what_if.pages:PAGES",
)
