"""Saving: runs as HTML files, as pictures, and in notebooks."""

from transformer.extensions import Extension

EXTENSION = Extension(name="saving")
