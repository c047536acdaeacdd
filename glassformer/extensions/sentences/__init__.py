"""Sentences: each line of a file is run, in a table that leads to every page."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="sentences",
    needs=("what_if",),
    pages="glassformer.extensions.sentences.page:PAGES",
    looks="glassformer.extensions.sentences.sentences_look:SentencesLook",
    commands=(
        Command(
            50,
            "sentences",
            "run a file of sentences: output, log-probability, entropy, repetition, chrF of each",
            "glassformer.extensions.sentences.command:add",
        ),
    ),
)
