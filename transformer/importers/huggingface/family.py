"""What is said of a family of models: its key table, its config, its ids and its tokenizers."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from transformer.importers.huggingface.settings import Fields, Settings
from transformer.importers.keys import Table

Present = Collection[str]  # names of the model, as the table gives them, for which the file has tensors


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: What people call it.
        table: Its key table; a few depend on the config.
        fields: From its config and from what the file has to the fields of ours.
        ids: What its models have where no file says it, by transformers' names of ids; which piece ends an output
            is not among them, as the library then ends none.
        vocabularies: Families of tokenizers that its models may have, those to be tried first before others.
        tied: Whether the output is the table of embeddings where config.json has no `tie_word_embeddings`.
        known: Further keys of config.json that have no effect in this family.
    """

    name: str
    table: Callable[[Settings], Table]
    fields: Callable[[Settings, Present], Fields]
    ids: Mapping[str, int | None] = field(default_factory=dict)
    vocabularies: tuple[str, ...] = ()
    tied: bool = True
    known: Collection[str] = ()
