"""The Translate page; here its view fields alone: shown model block, uncertainty measure, hidden token."""

from typing import Literal

from glassformer.state.fields import MAX_PLACE, Look, choice, place

Unsureness = Literal["entropy", "ten", "rest"]
BlockName = Literal[
    "auto", "encoder_embedding", "encoder_positions", "encoder", "encoder_ffn", "decoder_embedding",
    "decoder_positions", "mask", "decoder", "cross", "decoder_ffn", "output",
]  # fmt: skip


class StepLook(Look):
    """What is looked at on the page Translate alone."""

    shown_block: BlockName = choice("show", "auto")  # of the model, whose picture is shown
    unsure: Unsureness = choice("unsure", "entropy")  # how it is measured how unsure a step was
    hidden: int | None = place("hidden", MAX_PLACE)  # the token that an encoder with an MLM head is not shown, from 0
