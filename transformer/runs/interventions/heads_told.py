"""A number of heads that is not the one of the training, as when weights are loaded with a wrong config.

The parameters of attention are the same for any number of heads: only how the vectors are cut says which it was.

Source: Vaswani et al. (2017), section 3.2.2.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from transformer.model.anatomy import anatomy
from transformer.model.attention import Split
from transformer.model.config import MAX_WIDTH, ModelConfig
from transformer.model.scores import Scoring
from transformer.model.tap import Rewirer, Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Group, Intervention
from transformer.runs.interventions.spelling import whole
from words import Sentence, say


@dataclass(frozen=True)
class HeadsTold(Intervention):
    """All attentions cut their vectors into another number of heads; the root of their width divides the scores."""

    n: int = whole(say("Heads"), 1, MAX_WIDTH, 1)  # how many

    word: ClassVar[str] = "heads"
    group: ClassVar[Group] = "attention"
    title: ClassVar[Sentence] = say("Another number of heads")
    about: ClassVar[Sentence] = say(
        "The vectors of all attentions are cut into another number of heads than the model was trained with. No "
        "shape contradicts that, so that nobody notices a wrong number when weights are loaded; Vaswani et al. "
        "(2017), section 3.2.2."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        """Where a parameter belongs to a head, or to a width of heads, the number is to be seen."""
        if config.positions == "rotary":
            return say("Rotary positions turn pairs inside a head; heads of another width have other pairs.")
        if config.positions in ("relative", "alibi"):
            return say("Each head of this model has distances of its own; another number of heads has none.")
        if config.qk_norm:
            return say("The norms of queries and keys have the width of a head; heads of another width do not fit.")
        if config.n_kv_heads != config.n_heads:
            return say("Heads of this model share keys and values; another number has nothing to share.")
        return None

    def check(self, config: ModelConfig) -> None:
        """See whether the vectors can be cut so."""
        super().check(config)
        width = config.n_heads * config.d_head
        if width % self.n:
            raise ChangeError(
                "{change}: vectors of {width} numbers cannot be cut into {n} heads of equal width; choose a divisor, "
                "such as {divisors}.",
                change=str(self),
                width=width,
                n=self.n,
                divisors=", ".join(str(n) for n in range(1, min(width, 64) + 1) if width % n == 0),
            )

    def told(self) -> str:
        """In words."""
        return say("All attentions: cut into heads as if there were {n:,}", n=self.n)

    def seen_by_others(self, config: ModelConfig) -> ModelConfig:
        """The config with these heads."""
        width = config.n_heads * config.d_head
        return replace(config, n_heads=self.n, n_kv_heads=self.n, n_decoder_heads=0, d_head=width // self.n)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Cuts otherwise, and divides by the root of another width."""
        width = ground.config.n_heads * ground.config.d_head // self.n
        return (Rewirer({"*_attn.split": lambda split: self._split(split),
                         "*_attn.scoring": lambda how: _scaled(how, ground.config, width)}),)  # fmt: skip

    def _split(self, split: Split) -> Split:
        return Split(self.n, self.n, split.n_heads * split.d_head // self.n)


def _scaled(how: Scoring, config: ModelConfig, width: int) -> Scoring:
    """Divided by sqrt(width) where the model divides by its own width's root, and nobody has changed that."""
    own = {1 / math.sqrt(config.of(stack.name).d_head) for stack in anatomy(config).stacks}
    if config.score_scale is not None or how.scale not in own:
        return how
    return replace(how, scale=1 / math.sqrt(width))
