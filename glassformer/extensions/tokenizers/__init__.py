"""Tokenizers: those of other programs, as a checkpoint's vocabulary.json names them."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="tokenizers",
    modules={
        f"transformer.text.{name}": f"glassformer.extensions.tokenizers.{now}"
        for name, now in (
            ("library", "tokenizers_library"),
            ("options", "options"),
            ("vocabularies", "tokenizer_families"),
        )
    },
    tokenizers="glassformer.extensions.tokenizers.tokenizer_families",
)
