"""Hugging Face's transformers: folders of its models, read without it."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="huggingface",
    needs=("tokenizers", "weight_files", "importers"),
    modules={"transformer.importers.huggingface": "glassformer.extensions.huggingface"},
    readers="glassformer.extensions.huggingface.folder:READER",
)
