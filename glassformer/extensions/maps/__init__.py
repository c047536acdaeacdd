"""Attention maps from elsewhere: files of maps, opened on the Attention page without a model."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="maps",
    formats="glassformer.extensions.maps.format:FORMAT",
    sources="glassformer.extensions.maps.source:SOURCE",
)
