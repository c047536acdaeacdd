"""What is said of a family of models: its key table, its config, its ids and its tokenizers."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer.importers.huggingface.config_settings import Fields, Settings
from transformer.importers.keys import Table

Present = Collection[str]  # names of the model, as the table gives them, for which the file has tensors


@dataclass(frozen=True)
class Family:
    """A family of models."""

    name: str  # what people call it
    table: Table | Callable[[Settings], Table]  # its key table; a few depend on the config
    fields: Callable[[Settings, Present], Fields]  # from its config and from what the file has to the fields of ours
    always: Mapping[str, Any] = field(default_factory=dict)  # further fields of ours, which no config says
    # What its models have where no file says it, by transformers' names of ids; which piece ends an output is not
    # among them, as the library then ends none.
    ids: Mapping[str, int | None] = field(default_factory=dict)
    # Families of tokenizers that its models may have, those to be tried first before others.
    vocabularies: tuple[str, ...] = ()
    tied: bool = True  # whether the output is the table of embeddings where config.json has no `tie_word_embeddings`
    known: Collection[str] = ()  # further keys of config.json that have no effect in this family
