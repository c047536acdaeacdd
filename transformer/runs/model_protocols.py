"""What losses and runs need of a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer
    from transformer.text.tokenizer import AnyTokenizer


class Scorable(Protocol):
    """A model and its tokenizers."""

    @property
    def model(self) -> Transformer:
        """The model, in evaluation mode."""

    @property
    def src_tokenizer(self) -> AnyTokenizer:
        """The tokenizer of the source."""

    @property
    def tgt_tokenizer(self) -> AnyTokenizer:
        """The tokenizer of the target."""


class Runnable(Scorable, Protocol):
    """What a run needs of a checkpoint; `transformer.Checkpoint` is one."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def content_hash(self) -> str:
        """The hash by which queries name it."""

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""
