"""What a model's attentions do otherwise than the paper's, in sentences.

Knows nothing of Streamlit.
"""

from collections.abc import Iterator

from transformer.i18n import joined, say, through
from transformer.model.config import ModelConfig


def about_scores(config: ModelConfig) -> Iterator[str]:
    """How scores and masks are made otherwise, positions apart; nothing for the paper's."""
    if config.qk_norm:
        yield say("Queries and keys each go through an RMS norm.")
    if config.score_scale == 1:
        yield say("q·k is not divided by √d_head.")
    elif config.score_scale is not None:
        yield say("q·k is multiplied by {scale:.4g}.", scale=config.score_scale)
    if config.score_cap is not None:
        yield say("Scores are capped at ±{cap:g}.", cap=config.score_cap)
    if any(config.windows):
        numbers = joined(", ", (str(window) if window else "∞" for window in config.windows))
        yield say("Largest number of keys that a decoder query can see, layer by layer: {numbers}.", numbers=numbers)
    if config.mask_fill is not None:
        yield say("Where the mask closes a key, its score becomes {fill:g}, not −∞.", fill=config.mask_fill)


@through
def formula(text: str, *, bias: bool) -> str:
    """A sentence with a formula, as it holds for a model that has biases or none."""
    return text if bias else text.replace(" + b", "")
