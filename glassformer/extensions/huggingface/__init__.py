"""Hugging Face's transformers: folders of its models, read without it; a table of what its families are made of."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="huggingface",
    needs=("tokenizers", "weight_files", "importers"),
    modules={"transformer.importers.huggingface": "glassformer.extensions.huggingface"},
    readers="glassformer.extensions.huggingface.folder:READER",
    looks="glassformer.extensions.huggingface.known_models:KnownModelsLook",
    below={
        "glassformer.inside.model.model_pictures:OpenModel": "glassformer.extensions.huggingface.known_models:below"
    },
)
