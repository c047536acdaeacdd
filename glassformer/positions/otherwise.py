"""What Positions says of models without a table of positions, or with one that is not laid out as the paper's."""

from collections.abc import Iterator

from glassformer.positions import PositionsPanel
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.model.distance import reached
from transformer.runs.interventions.where import ANY_STACK


def instead_of_a_table(config: ModelConfig) -> str:
    """What a model has that adds no positions to its embeddings."""
    if config.placing.of:
        own = config.placing.of(config)
        return joined(" ", [own, *_buckets(config)]) if config.positions == "relative" else own
    if anatomy(config).writes:
        return say(
            "This model has no positional encoding: its decoder knows the order of its tokens only through the "
            "causal mask."
        )
    return say("This model has no positional encoding: it does not see the order of its tokens.")


def _buckets(config: ModelConfig) -> Iterator[str]:
    """How many buckets each stack uses, and where its last one begins."""
    for stack in anatomy(config).stacks:
        n, first, last = reached(config.of(stack.name), anatomy(config).attention(stack.name).causal)
        if first == last:
            yield say("{stack}: {n} buckets are used.", stack=ANY_STACK[stack.name], n=n)
        else:
            yield say("{stack}: {n} buckets are used; distances of {first} tokens or more share the last on their "
                      "side.", stack=ANY_STACK[stack.name], n=n, first=first)  # fmt: skip


def no_such_part(config: ModelConfig, panel: PositionsPanel) -> str:
    """Why a part that was asked for has no meaning for a model, and another is shown."""
    if panel in ("similarity", "shift"):
        return say(
            "The “{part}” part compares rows of a table of positions, which this model does not have, so the first "
            "part of the page is shown instead.",
            part={"similarity": say("Similarity"), "shift": say("Shift")}[panel],
        )
    if config.rotary is None and panel in ("rotations", "pair"):
        return say(
            "The chosen part is for rotary positions, which this model does not use, so the first part of the page "
            "is shown instead."
        )
    return say(
        "The chosen part shows what distance adds to scores, but this model adds a position vector to each "
        "embedding instead, so the first part of the page is shown."
    )


def about_layout(config: ModelConfig) -> str:
    """How a table of sinusoids that the model has otherwise than the paper is drawn; "" for all others."""
    if config.positions != "sinusoidal" or config.sinusoid_layout == "interleaved":
        return ""
    halves = say(
        "In this model, all sines come before all cosines. On this page, they alternate as in the paper, so the "
        "numbers can be compared with the formula; dimensions are numbered in that order."
    )
    if config.sinusoid_layout == "halves":
        return halves
    if config.sinusoid_layout == "tensor2tensor":
        slow = say(
            "This model's wavelengths differ slightly from the formula's: the shortest is 2π and the longest 10000 "
            "· 2π."
        )
        return joined(" ", [halves, slow])
    fairseq = say(
        "This model's wavelengths differ slightly from the formula's (as in fairseq, the shortest is 2π and the "
        "longest 10000 · 2π), and the first row of its table belongs to position p = {first}.",
        first=config.fill_id + 1,
    )
    return joined(" ", [halves, fairseq])
