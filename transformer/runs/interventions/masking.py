"""Mistakes with masks: the causal mask left out, off by one, the wrong way round, and padding that is not closed.

What a mask closes weighs 0, and a row that it closes throughout weighs nothing, unless the model or another change
fills masks with a number.

Source: Vaswani et al. (2017), section 3.2.3, for the masks.

Shapes: B batch, Q queries, K keys.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.tap import Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.spelling import choice
from transformer.runs.interventions.where import WHERE, attentions, check_where, where
from words import Sentence, say

CAUSAL: Final[dict[str, str]] = {
    "off": say("Off: every query sees all"),
    "hidden": say("Off by one: a query does not see itself"),
    "peek": say("Off by one: a query sees the next token"),
    "inverted": say("Inverted: only what comes after"),
    "transposed": say("Transposed: itself and what comes after"),
}
_TOLD: Final[dict[str, Sentence]] = {
    "off": say("Decoder self-attention: no causal mask"),
    "hidden": say("Decoder self-attention: the causal mask also hides each token from itself"),
    "peek": say("Decoder self-attention: the causal mask shows one token too many"),
    "inverted": say("Decoder self-attention: the causal mask is inverted"),
    "transposed": say("Decoder self-attention: the causal mask is transposed"),
}
_SEES: Final[dict[str, Callable[[Tensor, Tensor], Tensor]]] = {  # of places of queries [Q, 1] and of keys [1, K]
    "off": lambda query, key: (key == key) & (query == query),
    "hidden": lambda query, key: key < query,
    "peek": lambda query, key: key <= query + 1,
    "inverted": lambda query, key: key > query,
    "transposed": lambda query, key: key >= query,
}


@dataclass(frozen=True)
class CausalMask(Intervention):
    """The decoder's causal mask is another one; windows and padding stay closed."""

    how: str = choice(say("Causal mask"), CAUSAL, "off")  # which

    word: ClassVar[str] = "causal"
    group: ClassVar[Group] = "masks"
    title: ClassVar[Sentence] = say("The causal mask wrong")
    about: ClassVar[Sentence] = say(
        "The causal mask lets a token see itself and what came before it; Vaswani et al. (2017), section 3.2.3. "
        "While a model writes there is nothing after the last token, but all tokens before it see what they would "
        "not."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """A model that writes nothing has no causal mask."""
        if not config.n_decoder_layers:
            return say("An encoder alone has no causal mask: each of its tokens sees all others anyway.")
        return None

    def told(self) -> str:
        """In words."""
        return _TOLD[self.how]

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Makes the mask anew. Where only the past is seen, and nothing fills a closed row, a cache is right."""
        causal = self.how == "hidden" and ground.config.mask_fill is None
        return (Rewirer({"decoder.causal": self._mask}, causal=causal),)

    def _mask(self, causal: Tensor) -> Tensor:
        n_queries, n_keys = causal.shape[-2:]
        key = torch.arange(n_keys, device=causal.device)[None, :]
        query = torch.arange(n_keys - n_queries, n_keys, device=causal.device)[:, None]
        return _SEES[self.how](query, key)[None, None]


PADDING: Final[dict[str, str]] = {
    "off": say("Off: padding is read like words"),
    "rows": say("On the wrong axis: rows of padding are closed"),
}


@dataclass(frozen=True)
class PaddingMask(Intervention):
    """Padding is not closed, or its rows are instead of its columns."""

    where: str = where()  # in which attention
    how: str = choice(say("Padding mask"), PADDING, "off")  # which

    word: ClassVar[str] = "padding"
    group: ClassVar[Group] = "masks"
    title: ClassVar[Sentence] = say("The padding mask wrong")
    about: ClassVar[Sentence] = say(
        "A padding mask closes the columns of padding, so that nobody reads it. It shows only where there is "
        "padding: in a batch of texts of different lengths, or where padding is put into a source. On the wrong axis "
        "it closes the rows of padding instead; cross-attention, whose rows are another text's tokens, then has none."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Without padding nothing is closed."""
        if config.pad_id is None:
            return say("This model has no padding piece, and so no padding mask.")
        return None

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this attention, and rows of padding there."""
        super().check(config)
        check_where(self, config, self.where)
        if self.how == "rows" and self.where == "cross":
            raise ChangeError(
                "{change} names the rows of cross-attention; they are the target's tokens, and the padding is the "
                "source's.",
                change=str(self),
            )

    def told(self) -> str:
        """In words."""
        if self.how == "off":
            return say("{attention}: no padding mask", attention=WHERE[self.where])
        return say("{attention}: the padding mask closes rows", attention=WHERE[self.where])

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Changes what is known of padding before masks are made of it; each token is closed or open by itself."""
        changed = _columns_open if self.how == "off" else _rows_closed
        kinds = {one.kind for one in attentions(ground.config, self.where)}
        settings: dict[str, Callable[[Tensor], Tensor]] = {}
        if "encoder" in kinds:
            settings["encoder.padding"] = changed
        if "decoder" in kinds:
            settings["decoder.padding"] = changed
        if "cross" in kinds:
            settings["decoder.source_padding"] = _columns_open
        return (Rewirer(settings),)


def _columns_open(mask: Tensor) -> Tensor:
    return torch.ones_like(mask)


def _rows_closed(mask: Tensor) -> Tensor:
    return mask.transpose(-2, -1)  # [B, 1, 1, K] -> [B, 1, K, 1]
