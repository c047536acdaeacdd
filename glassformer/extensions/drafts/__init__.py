"""Drafts: speculative decoding, where a cheap guess of an output is checked in one pass."""

from transformer.extensions import Extension

EXTENSION = Extension(name="drafts", looks="glassformer.extensions.drafts.drafts_look:DraftsLook")
