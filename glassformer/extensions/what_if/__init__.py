"""Interventions ("What if"): changes inside the model, and comparing runs."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="what_if",
    modules={
        "transformer.analysis.compare": "glassformer.extensions.what_if.two_runs",
        "transformer.analysis.head_effects": "glassformer.extensions.what_if.head_effects",
    },
    names={"ZeroHead": "glassformer.extensions.what_if.interventions:ZeroHead"},
    pages="glassformer.extensions.what_if.page:PAGES",
    changes="glassformer.extensions.what_if.interventions:KINDS",
    blocks="glassformer.extensions.what_if.what_if_panels:BLOCKS",
    looks="glassformer.extensions.what_if.comparison:WhatIfLook",
)
