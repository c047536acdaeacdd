"""Live models: the app on a model that is in memory, served from the process that holds it."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="live",
    needs=("importers",),
    names={"serve": "glassformer.extensions.live.app_server:serve"},
    sources="glassformer.extensions.live.live_models:SOURCE",
)
