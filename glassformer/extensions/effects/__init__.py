"""Effects: what matters for an output, and what goes wrong in a model with a mistake."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="effects",
    needs=("what_if", "wirings"),
    modules={"transformer.analysis.attribution": "glassformer.extensions.effects.attribution"},
    pages="glassformer.extensions.effects.pages:PAGES",
    heads="glassformer.extensions.effects.heads_panel:HEADS",
    blocks="glassformer.extensions.effects.mistake_link:BLOCKS",
    looks="glassformer.extensions.effects.effects_look:EffectsLook",
)
