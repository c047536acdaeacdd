"""The families of Hugging Face's transformers that can be read, by the `model_type` of their config.json."""

from collections.abc import Mapping
from types import MappingProxyType

from glassformer.extensions.huggingface.library import bart_like, bert, gpt, llama_like, t5
from glassformer.extensions.importers.library.config_settings import Family

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {**bart_like.FAMILIES, **t5.FAMILIES, **gpt.FAMILIES, **llama_like.FAMILIES, **gpt.NEOX_FAMILIES, **bert.FAMILIES}
)
