"""Tokenizers: those of other programs, as a checkpoint's vocabulary.json names them."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="tokenizers",
    modules={
        f"transformer.text.{name}": f"glassformer.extensions.tokenizers.{name}"
        for name in ("library", "options", "vocabularies")
    },
    tokenizers="glassformer.extensions.tokenizers.tokenizer_families",
)
