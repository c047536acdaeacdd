"""Hub: models by their names on the Hugging Face Hub, fetched into its cache and opened from there."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="hub",
    needs=("tokenizers", "weight_files", "importers", "huggingface"),
    names={"pull": "glassformer.extensions.hub.hub_cache:pull"},
    commands=(
        Command(
            82,
            "pull",
            "fetch a model of the Hugging Face Hub into its cache, by its name",
            "glassformer.extensions.hub.hub_commands:add_pull",
        ),
        Command(
            84,
            "models",
            "list the models in the cache of the Hugging Face Hub, and those that come along",
            "glassformer.extensions.hub.hub_commands:add_models",
        ),
    ),
    formats="glassformer.extensions.hub.hub_cache:FORMAT",
    sources="glassformer.extensions.hub.hub_models:SOURCE",
)
