"""Corpus: runs over many sentences, kept in tables and asked with SQL."""

from transformer.extensions import Extension

EXTENSION = Extension(name="corpus", looks="glassformer.extensions.corpus.corpus_look:CorpusLook")
