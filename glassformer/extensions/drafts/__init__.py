"""Drafts: speculative decoding, where a cheap guess of an output is checked in one pass."""

from transformer.extensions import Extension, PagePart

EXTENSION = Extension(
    name="drafts",
    needs=("what_if",),
    drafts="transformer.runs.drafting.drafts",
    parts=(PagePart(page="search", name="drafts", draw="ui.search.drafting:draw"),),
)
