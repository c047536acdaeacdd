"""Changed masks: causal left out, shifted or reversed; padding open; sparse patterns (local, dilated, global).

Mistakes: the causal mask left out, off by one, the wrong way round, and padding that is not closed. A closed cell has
weight 0, and so has a row without open keys, unless the model or another change fills masks with a number.

Sparse patterns leave each query a few keys, and never open what the model's own masks close:

    local    the keys that are at most this many tokens away
    dilated  every n-th key, this many on each side: as many keys, from farther away
    global   local, and the first tokens see all and are seen by all

Source: Vaswani et al. (2017), section 3.2.3, for the masks; Beltagy et al., "Longformer" (2020), section 3.1, for
patterns; Luong et al. (2015), section 3.2, "local-m", for cross-attention, where query and key are places of two
texts.

Shapes: B batch, Q queries, K keys.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

import torch
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model.anatomy import Attention
from transformer.model.config import ModelConfig
from transformer.model.taps import Hook, Rewirer
from transformer.runs.interventions.base import Intervention, InterventionContext, InterventionError
from transformer.runs.interventions.fields import choice, whole
from transformer.runs.interventions.targets import ATTENTIONS, SELF, AttentionChange, where

_CAUSAL: Final[dict[str, tuple[Sentence, Callable[[Tensor, Tensor], Tensor]]]] = {
    "off": (say("Off: every query sees all keys"), lambda query, key: (key == key) & (query == query)),
    "hidden": (say("Off by one: a query does not see itself"), lambda query, key: key < query),
    "peek": (say("Off by one: a query sees the next token"), lambda query, key: key <= query + 1),
    "inverted": (say("Inverted: a query sees only later tokens"), lambda query, key: key > query),
    "transposed": (say("Transposed: a query sees itself and later tokens"), lambda query, key: key >= query),
}
"""What a query sees, by its place [Q, 1] and that of the key [1, K]."""


class CausalMask(Intervention):
    how: str = choice(say("Causal mask"), {how: said for how, (said, _) in _CAUSAL.items()}, "off")  # which

    word = "causal"
    group = "masks"
    title = say("A wrong causal mask")
    about = say(
        "The causal mask lets a token see only itself and what came before it (Vaswani et al., 2017, section "
        "3.2.3). While the model writes, nothing follows the last token, but a wrong mask can let earlier tokens "
        "see later ones."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if not config.n_decoder_layers:
            return say("An encoder-only model has no causal mask: each token sees all other tokens anyway.")
        return None

    def told(self) -> str:
        return say("Decoder's causal mask – {how}", how=_CAUSAL[self.how][0])

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Makes a new mask. A cache is right if only the past is seen and nothing fills a closed row."""
        causal = self.how == "hidden" and ground.config.mask_fill is None
        return (Rewirer({"decoder.causal": self._mask}, causal=causal),)

    def _mask(self, causal: Tensor) -> Tensor:
        n_queries, n_keys = causal.shape[-2:]
        key = torch.arange(n_keys, device=causal.device)[None, :]
        query = torch.arange(n_keys - n_queries, n_keys, device=causal.device)[:, None]
        return _CAUSAL[self.how][1](query, key)[None, None]


PADDING: Final[dict[str, str]] = {
    "off": say("Off: padding is read like words"),
    "rows": say("On the wrong axis: closes the rows of padding instead of its columns"),
}


class PaddingMask(AttentionChange):
    how: str = choice(say("Padding mask"), PADDING, "off")  # which

    word = "padding"
    group = "masks"
    title = say("A wrong padding mask")
    about = say(
        "A padding mask closes the columns of padding, so no token reads it. Changing the mask has an effect only "
        "where there is padding: in a batch of texts of different lengths, or in a source with padding added. On "
        "the wrong axis, the mask closes the rows of padding instead. Cross-attention then has no padding mask, "
        "because its rows are the tokens of another text."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if config.pad_id is None:
            return say("This model has no padding token, so it has no padding mask.")
        return None

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if self.how == "rows" and self.where == "cross":
            raise InterventionError(
                "{change} closes rows of cross-attention, but these rows are target tokens, and the padding is in "
                "the source.",
                change=str(self),
            )

    def told(self) -> str:
        if self.how == "off":
            return say("{attention}: no padding mask", attention=self.name)
        return say("{attention}: the padding mask closes rows (queries) instead of columns (keys)", attention=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Changes which tokens count as padding before masks are made; each token is open or closed on its own."""
        own: Callable[[Tensor], Tensor] = torch.ones_like
        if self.how == "rows":
            own = partial(torch.transpose, dim0=-2, dim1=-1)  # [B, 1, 1, K] -> [B, 1, K, 1]
        settings = {
            "encoder": ("encoder.padding", own),
            "decoder": ("decoder.padding", own),
            "cross": ("decoder.source_padding", torch.ones_like),
        }
        return (Rewirer(dict(settings[one.kind] for one in self.chosen(ground.config))),)


PLACES: Final[dict[str, str]] = {**SELF, "cross": ATTENTIONS["cross"]}
MOST: Final = 4096


class LocalWindow(AttentionChange):
    where: str = where(PLACES)  # in which attention
    width: int = whole(say("Tokens on each side"), 0, MOST, 1)  # how many, to each side

    word = "window"
    swept = "width"
    group = "masks"
    title = say("A local window")
    about = say(
        "A query sees itself and this many tokens on each side, as far as its masks allow (Beltagy et al., 2020, "
        "section 3.1). In cross-attention, the window is centred on the source token with the same number as the "
        "query."
    )

    def told(self) -> str:
        return say("{attention}: local window (tokens on each side: {n:,})", attention=self.name, n=self.width)

    def chosen(self, config: ModelConfig) -> tuple[Attention, ...]:
        return tuple(one for one in super().chosen(config) if self.where == one.kind or one.kind in SELF)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return tuple(_Closing(one.place("*"), self) for one in self.chosen(ground.config))

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() <= self.width


class DilatedWindow(LocalWindow):
    step: int = whole(say("Step", about="a stride"), 2, MOST, 2)  # every how many-th

    word = "dilated"
    title = say("A dilated window")
    about = say(
        "A query sees itself and this many tokens on each side, with gaps between them (Beltagy et al., 2020, "
        "section 3.1)."
    )

    def told(self) -> str:
        return say(
            "{attention}: dilated window (tokens on each side: {n:,}, step: {step:,})",
            attention=self.name,
            n=self.width,
            step=self.step,
        )

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        apart = (query - key).abs()
        return (apart <= self.width * self.step) & (apart % self.step == 0)


class GlobalTokens(LocalWindow):
    first: int = whole(say("Global tokens"), 1, MOST, 1)  # how many

    word = "global"
    title = say("Global and local attention")
    about = say(
        "A query sees itself and this many tokens on each side. The global tokens, which come first, see all other "
        "tokens and are seen by all of them, as far as the masks allow. Beltagy et al. (2020), section 3.1."
    )

    def told(self) -> str:
        return say(
            "{attention}: local window (tokens on each side: {n:,}, global tokens: {first:,})",
            attention=self.name,
            n=self.width,
            first=self.first,
        )

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return ((query - key).abs() <= self.width) | (key < self.first) | (query < self.first)


class _Closing:
    """Closes what a pattern does not have. The queries are seen before the mask, and set their number."""

    causal = True

    def __init__(self, attention: str, pattern: LocalWindow) -> None:
        self._sites, self._pattern, self._n_queries = (f"{attention}.queries", f"{attention}.mask"), pattern, 0

    def wants(self, site: str) -> bool:
        return any(fnmatchcase(site, one) for one in self._sites)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        if site.endswith(".queries"):
            self._n_queries = value.size(-2)
            return value
        query = torch.arange(offset, offset + self._n_queries, device=value.device)[:, None]
        key = torch.arange(value.size(-1), device=value.device)[None, :]
        return value & self._pattern.sees(query, key)  # [B, 1, Q, K]
