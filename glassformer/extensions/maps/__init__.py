"""Attention maps from elsewhere: files of maps, opened on the Attention page without a model."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="maps",
    names={
        "GivenAttention": "transformer.maps.own_maps:GivenAttention",
        "GivenMaps": "transformer.maps.own_maps:GivenMaps",
        "given_maps": "transformer.maps.arrays:given_maps",
        "load_maps": "transformer.maps.npzfile:load_maps",
        "save_maps": "transformer.maps.npzfile:save_maps",
    },
    formats="glassformer.extensions.maps.format:FORMAT",
    sources="glassformer.extensions.maps.source:SOURCE",
)
