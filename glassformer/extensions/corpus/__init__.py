"""Corpus: runs over many sentences, kept in tables and asked with SQL."""

from transformer.extensions import Extension

EXTENSION = Extension(name="corpus")
