"""Attention maps from elsewhere, from arrays or `.npz` files, shown on the Attention page without a model."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="maps",
    modules={"transformer.maps": "glassformer.extensions.maps.library"},
    names={
        "GivenAttention": "glassformer.extensions.maps.library.given_maps:GivenAttention",
        "GivenMaps": "glassformer.extensions.maps.library.given_maps:GivenMaps",
        "given_maps": "glassformer.extensions.maps.library.given_maps:given_maps",
        "load_maps": "glassformer.extensions.maps.library.npzfile:load_maps",
        "save_maps": "glassformer.extensions.maps.library.npzfile:save_maps",
    },
    formats="glassformer.extensions.maps.library.npzfile:FORMAT",
    sources="glassformer.extensions.maps.source:SOURCE",
)
