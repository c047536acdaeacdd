"""Registry of the kinds of positions (sinusoidal, learned, rotary, relative, ALiBi): effect, parameters, texts.

To add a kind, write its record here and, if it adds to scores, its equation in `attention_positions`. Nearly everything
else asks the record, not the name; a second kind that turns vectors or adds a fixed table touches more. It knows
nothing of torch. Source: at the equations, in `positions`, `rotary` and `attention_positions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from transformer.i18n import Sentence, say

PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]
Adds = Literal["table", "turn", "bias", "nothing"]


@dataclass(frozen=True, kw_only=True)
class Placing:
    """One kind. Its functions take a `ModelConfig`, typed `Any` because the config itself imports this file."""

    # "table": vectors are added to the token embeddings; "turn": queries and keys are turned; "bias": numbers are
    # added to the scores of the self-attentions.
    adds: Adds = "nothing"
    parameters: Callable[[Any], tuple[int, ...]] | None = None  # shape of a stack's learned table; None: it has none
    in_attention: Sentence | None = None  # how attentions differ from the paper's
    in_score: Sentence | None = None  # the same for one score, where its computation is explained
    of: Callable[[Any], Sentence] | None = None  # what a model has instead of a table


KINDS: Final[Mapping[PositionKind, Placing]] = {
    "sinusoidal": Placing(adds="table"),
    "learned": Placing(adds="table", parameters=lambda config: (config.max_len, config.d_model)),
    "rotary": Placing(
        adds="turn",
        in_attention=say("Rotary positions rotate queries and keys."),
        of=lambda config: say(
            "This model has no table of positions. It has rotary positions: every self-attention sub-layer rotates "
            "its queries and keys by angles that grow with the position. In each head, {n} of the {d_head} "
            "dimensions rotate, in pairs.",
            n=config.rotary.width(config.d_head),
            d_head=config.d_head,
        ),
    ),
    "relative": Placing(
        adds="bias",
        parameters=lambda config: (config.relative_buckets, config.n_heads),
        in_attention=say("Relative positions add a learned bias to the scores."),
        in_score=say("Relative positions add a number that this head has learned for this distance."),
        of=lambda config: say(
            "This model has no table of positions. It has relative positions: every self-attention sub-layer adds "
            "a learned number to each score. The number depends on the head and on the distance between query and "
            "key. Distances come in buckets, each with one number: short distances have a bucket each, and the "
            "longer distances are, the more of them share one."
        ),
    ),
    "alibi": Placing(
        adds="bias",
        in_attention=say("ALiBi lowers each score in proportion to the distance; each head has its own slope."),
        in_score=say("ALiBi adds a penalty: the greater the distance, the lower the score."),
        of=lambda config: say(
            "This model has no table of positions. It has ALiBi: every self-attention sub-layer lowers each score "
            "by the distance between query and key, times a slope. Each head has its own slope."
        ),
    ),
    "none": Placing(),
}
