"""Drafts: speculative decoding, where a cheap guess of an output is checked in one pass."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="drafts", needs=("what_if",), parts="ui.search.drafting:PART", drafts="transformer.runs.drafting.drafts"
)
