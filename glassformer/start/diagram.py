"""The start page: examples, the diagram of the loaded model, a lane of linked blocks for each stack, and the ways on.

A block is named in plain words and by its proper term, and leads to the page where it is seen at work.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from glassformer.frame.source_box import glossed
from glassformer.runs import loading
from glassformer.runs.open_run import OpenRun, address
from glassformer.runs.sides import SIDE_OF
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.door import st
from glassformer.start import start_style, thumbnails
from glassformer.state import session
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Anatomy, Stack, anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


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


MOST_PIECES = 200


def draw(run: OpenRun) -> None:
    """Draw a lane for each stack, what the encoder hands over between them."""
    start_style.apply()
    parts = anatomy(run.checkpoint.config)
    with st.container(key=run.key(page_style.DIAGRAM)):
        for place, lane in enumerate(lanes(parts)):
            if place:
                with st.container(key=run.key("handed_over")):
                    st.caption(
                        say("The encoder's output goes to every cross-attention sub-layer, as keys and values ↓")
                    )
            _lane(run, lane)


def _lane(run: OpenRun, lane: Lane) -> None:
    name = lane.stack.name
    with st.container(key=run.key(f"{page_style.LANE}_{name}")):
        with st.container(
            key=run.key(f"{page_style.LANE}_head_{name}"), horizontal=True, vertical_alignment="center"
        ):
            st.markdown(drawing.strong(lane.title), width="content")
            if name == "decoder" and not run.view.guess:
                with st.container(key=run.key(f"text_{name}"), width="content"):
                    st.markdown(drawing.plain(run.trace.output_text))
            with st.container(key=run.key(f"pieces_{name}_{_of(run)}"), width="content"):
                _pieces(run, lane)
        with st.container(key=run.key(f"{page_style.LANE}_blocks_{name}"), horizontal=True, gap=None):
            for repeated, blocks in groupby(lane.blocks, key=lambda block: block.repeated):
                if not repeated:
                    for block in blocks:
                        _block(run, lane, block)
                    continue
                with st.container(key=run.key(f"{page_style.LANE}_layers_{name}"), horizontal=True, gap=None):
                    for block in blocks:
                        _block(run, lane, block)
                    st.caption(say_n("× {n} layer", "× {n} layers", lane.stack.n_layers), width="content")


def _block(run: OpenRun, lane: Lane, block: Block) -> None:
    with st.container(key=run.key(f"{page_style.BLOCK}_{lane.stack.name}_{block.name}"), gap=None):
        menu.link(block.page, block.does, address(run.checkpoint, run.link, **block.fields))
        thumbnails.draw(run, lane.stack.name, block.name)
        st.caption(block.term)


def _of(run: OpenRun) -> str:
    """Names a run in a key: pieces of another one are other elements, which come in one after the other again."""
    return f"{zlib.crc32(run.run_id.encode()):08x}{'_guess' if run.view.guess else ''}"


def _pieces(run: OpenRun, lane: Lane) -> None:
    """Draw what goes in, or for the decoder what comes out."""
    trace = run.trace
    if lane.stack.name == "encoder":
        _chips(trace.src_pieces, "blue")
        return
    if trace.first_row:
        _chips(trace.src_pieces, "blue")
    if run.view.guess:  # in class nothing is given away
        _chips([*trace.tgt_pieces[: session.view().step], "?"], "orange")
    else:
        _chips(trace.tgt_pieces, "orange")


def _chips(pieces: Sequence[str], colour: str) -> None:
    shown = [f":{colour}-badge[{drawing.plain(piece)}]" for piece in pieces[:MOST_PIECES]]
    st.markdown(joined(" ", shown), width="content")


OWN, OTHERS = 2, 1


def draw_examples(checkpoint: Checkpoint) -> None:
    """Draw them, each one click."""
    own = str(st.session_state.get(session.MODEL) or checkpoint.name)  # what was handed in has another name there
    others = [(name, entry) for name, entry in loading.usable().items() if name != checkpoint.name and entry.examples]
    others.sort(key=lambda one: not one[1].language)  # a sentence before letters
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="examples"):
        st.caption(say("Examples"), width="content")
        for place, example in enumerate(checkpoint.card.tried()[:OWN]):
            _example(own, example, glossed(example, checkpoint.card.glosses.get(example, "")), place)
        for place, (name, entry) in enumerate(others[:OTHERS], start=OWN):
            first = entry.examples[0]
            _example(
                name, first, say("{title}: {example}", title=entry.title, example=glossed(first, entry.gloss)), place
            )


def _example(model: str, example: str, label: str, place: int) -> None:
    taken = st.button(
        drawing.plain(label),
        key=f"start_example_{place}",
        type="tertiary",
        on_click=session.read_with,
        args=(model, example),
    )
    if taken:
        st.rerun()  # the whole page: it may be another checkpoint's


def ways(checkpoint: Checkpoint) -> None:
    """Draw the three ways on from the page."""
    link = session.asked()
    steps = say("Step through a translation") if checkpoint.card.source_code else say("Step through a run")
    with st.container(key=page_style.WAYS, horizontal=True):
        if anatomy(checkpoint.config).writes:
            menu.link("step", steps, address(checkpoint, link), icon=":material/play_circle:")
        menu.link("attention", say("Look at attention"), address(checkpoint, link), icon=":material/visibility:")
        menu.link(
            "checkpoints",
            say("Examine your own checkpoint"),
            address(checkpoint, link),
            icon=":material/folder_open:",
        )
