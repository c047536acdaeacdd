"""Importers: models of other programs, opened from folders, uploads and archives."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="importers",
    formats="glassformer.extensions.importers.format:FORMAT",
    sources="glassformer.extensions.importers.source:SOURCE",
)
