"""Corpus: runs over many sentences, kept in tables and asked with SQL."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="corpus",
    pages="glassformer.extensions.corpus.pages:PAGES",
    commands=(
        Command(
            50,
            "sentences",
            "run a file of sentences: output, log-probability, entropy, repetition, chrF of each",
            "transformer.commands.sentences:add",
        ),
        Command(
            80,
            "corpus",
            "measure a model and its heads over a file of sentences: tables for the page Over a corpus",
            "transformer.commands.corpus:add",
        ),
    ),
)
