"""What the Positions page says of models that have no table of positions, or one that is not laid out as the paper's.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from ui.state.view import PositionsPanel
from words import joined, say


def instead_of_a_table(config: ModelConfig) -> str:
    """What a model has that adds no positions to its embeddings."""
    if config.placing.of:
        return config.placing.of(config)
    if anatomy(config).writes:
        return say("This model has no positions: only the causal mask tells its decoder what came before.")
    return say("This model has no positions: it does not see the order of its tokens.")


def no_such_part(config: ModelConfig, panel: PositionsPanel) -> str:
    """Why a part that was asked for has no meaning for a model, and another is shown."""
    if panel in ("similarity", "shift"):
        return say(
            "The part “{part}” compares rows of a table of positions, and this model has none; its first part "
            "is shown.",
            part={"similarity": say("Similarity"), "shift": say("Shift")}[panel],
        )
    if config.rotary is None and panel in ("rotations", "pair"):
        return say("Only rotary positions turn anything, and this model has others; its first part is shown.")
    return say(
        "This model adds a vector for each position to its embeddings, so no score or bias goes by distance; its "
        "first part is shown."
    )


def about_layout(config: ModelConfig) -> str:
    """How a table of sinusoids that the model has otherwise than the paper is drawn; "" for all others."""
    if config.positions != "sinusoidal" or config.sinusoid_layout == "interleaved":
        return ""
    halves = say(
        "In this model all sines stand before all cosines. Here they are drawn in turns, as in the paper, so that "
        "the same numbers can be compared with the formula; dimensions are counted in that order."
    )
    if config.sinusoid_layout == "halves":
        return halves
    if config.sinusoid_layout == "tensor2tensor":
        slow = say("Its wavelengths are not quite the formula's: the shortest and the longest are 2π and 10000 · 2π.")
        return joined(" ", [halves, slow])
    fairseq = say(
        "Its wavelengths are not quite the formula's (fairseq's shortest and longest are 2π and 10000 · 2π), and its "
        "first row is that of p = {first}.",
        first=config.fill_id + 1,
    )
    return joined(" ", [halves, fairseq])
