"""Corpus: runs over many sentences, kept in tables and asked with SQL."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="corpus",
    needs=("what_if", "sentences"),
    modules={
        "transformer.corpus": "glassformer.extensions.corpus.library",
        "transformer.corpus.conditions": "glassformer.extensions.corpus.library.queries",
        "transformer.corpus.rollups": "glassformer.extensions.corpus.library.tables",
    },
    pages="glassformer.extensions.corpus.page:PAGES",
    below={"glassformer.attention.head_table_pictures:Heads": "glassformer.extensions.corpus.heads:below"},
    commands=(
        Command(
            80,
            "corpus",
            "measure a model and its heads over a file of sentences: tables for the page Over a corpus",
            "glassformer.extensions.corpus.command:add",
        ),
    ),
    looks="glassformer.extensions.corpus.corpus_look:CorpusLook",
)
