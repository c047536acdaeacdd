"""Live models: the app on a model that is in memory, served from the process that holds it."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="live",
    needs=("importers", "weight_files"),
    names={
        "from_memory": "glassformer.extensions.live.memory_reader:from_memory",
        "serve": "glassformer.extensions.live.app_server:serve",
        "show": "glassformer.extensions.live.memory_reader:show",
    },
    sources="glassformer.extensions.live.app_server:SOURCE",
)
