"""What if: changes inside the model, comparing runs, what matters, what goes wrong."""

from transformer.extensions import Extension

EXTENSION = Extension(name="what_if", looks="glassformer.extensions.what_if.what_if_look:WhatIfLook")
