"""Drafts: speculative decoding, where a cheap guess of an output is checked in one pass."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="drafts",
    needs=("what_if",),
    parts="glassformer.extensions.drafts.page:PART",
    looks="glassformer.extensions.drafts.page:DraftsLook",
    drafts="glassformer.extensions.drafts.drafter",
)
