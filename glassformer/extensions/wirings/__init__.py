"""Wirings: a catalogue of mistakes in a Transformer's code, and the search for the one that explains pairs."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="wirings", needs=("what_if",), modules={"transformer.wirings": "glassformer.extensions.wirings"}
)
