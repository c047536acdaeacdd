"""Corpus: runs over many sentences, kept in tables and asked with SQL."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="corpus",
    needs=("what_if", "sentences"),
    modules={"transformer.corpus": "glassformer.extensions.corpus.library"},
    charts={
        "head_differences_spec": "glassformer.extensions.corpus.charts.corpus_beside:head_differences_spec",
        "joined_heads_spec": "glassformer.extensions.corpus.charts.corpus_joined:joined_heads_spec",
        "joined_spec": "glassformer.extensions.corpus.charts.corpus_joined:joined_spec",
        "measure_spread_spec": "glassformer.extensions.corpus.charts.corpus:measure_spread_spec",
    },
    pages="glassformer.extensions.corpus.pages:PAGES",
    blocks="glassformer.extensions.corpus.blocks:BLOCKS",
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
