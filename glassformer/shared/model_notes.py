"""Small texts for several pages: how attention differs from the paper's, training effort, durations."""

from collections.abc import Iterator, Mapping
from typing import Any

from transformer.i18n import joined, say, say_n, through
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


def effort(record: Mapping[str, Any]) -> str:
    """The training effort in a card's record ("17 epochs, 10,856,421 target pieces, 1 h"), without invalid numbers."""
    epochs, tokens, seconds = (_positive(record.get(name)) for name in ("epochs", "target_tokens", "seconds"))
    said = [say_n("{n:,} epoch", "{n:,} epochs", round(epochs))] if epochs else []
    return joined(", ", [*said, *effort_of(tokens, seconds)])


def effort_of(tokens: float, seconds: float) -> list[str]:
    """The pieces and the time; nothing of what is 0."""
    said = [say_n("{n:,} target token", "{n:,} target tokens", round(tokens))] if tokens else []
    return [*said, *([time_of(seconds)] if seconds else [])]


def time_of(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return say("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return say("{minutes} min", minutes=minutes)
    return say("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)


def _positive(value: object) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0  # type: ignore[arg-type]
