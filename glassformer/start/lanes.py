"""What the start page says of a model: for each stack a lane of blocks, in the order of the computation.

A block is named in plain words and by its proper term, and leads to the page where it is seen at work.

Knows nothing of Streamlit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from glassformer.runs.sides import SIDE_OF
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Anatomy, Stack

_READS = say("The encoder reads")
_WRITES = say("The decoder writes")


@dataclass(frozen=True)
class Block:
    """A part of the model."""

    name: str  # in the keys of what is drawn
    does: Sentence  # what it does, in plain words
    term: Sentence  # what it is called
    page: str  # path of the page that shows it
    fields: dict[str, object] = field(default_factory=dict)  # what is looked at there, by the names of fields
    repeated: bool = False  # it is in every layer of its stack


@dataclass(frozen=True)
class Lane:
    """A stack with what stands before and behind its layers."""

    stack: Stack  # which
    title: Sentence  # what it does as a whole
    blocks: tuple[Block, ...]  # in the order of the computation


def lanes(parts: Anatomy) -> tuple[Lane, ...]:
    """The lanes of a model, the encoder's before the decoder's."""
    return tuple(
        Lane(stack, _READS if stack.name == "encoder" else _WRITES, tuple(_blocks(stack))) for stack in parts.stacks
    )


def _blocks(stack: Stack) -> Iterator[Block]:
    side: dict[str, object] = {"side": SIDE_OF[stack.name]}
    yield Block(
        "embedding", say("Each piece becomes numbers"), say("Embedding"), "inside", side | {"inside_panel": "pieces"}
    )
    yield Block(
        "positions",
        say("Each piece's position is added"),
        say("Positions"),
        "positions",
        side | {"positions_panel": "table"},
    )
    layer: dict[str, object] = {"panel": "overview", "layer": None, "head": None}
    if stack.name == "encoder":
        yield Block(
            "self_attn", say("What each piece means in context"), say("Self-attention"), "attention",
            layer | {"kind": "encoder"}, repeated=True,
        )  # fmt: skip
    else:
        yield Block(
            "mask", say("No looking ahead"), say("Causal mask"), "masks",
            {"masks_panel": "masks", "mask": "causal"}, repeated=True,
        )  # fmt: skip
        yield Block(
            "self_attn", say("What has been written so far"), say("Self-attention"), "attention",
            layer | {"kind": "decoder"}, repeated=True,
        )  # fmt: skip
    if "cross_attn" in stack.sublayers:
        yield Block(
            "cross_attn", say("Where to look in the source"), say("Cross-attention"), "attention",
            layer | {"kind": "cross"}, repeated=True,
        )  # fmt: skip
    yield Block(
        "ffn", say("Each piece is processed separately"), say("Feed-forward"), "inside",
        side | {"inside_panel": "ffn"}, repeated=True,
    )  # fmt: skip
    if stack.name == "decoder":
        yield Block("output", say("Which piece comes next"), say("Output layer"), "step")
