"""The start page: how it looks, examples, the diagram of the loaded model with a lane of links a stack, the ways on.

A block is named in plain words and by its proper term, and leads to the page where it is seen at work.

The rules are fixed text of ours; no data ever goes into them. The colours are thin enough to suit both themes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from glassformer.components.streamlit_page import styled
from glassformer.frame.source_box import glossed
from glassformer.runs import loading
from glassformer.runs.map_axes import SIDE_OF
from glassformer.runs.open_run import OpenRun, address
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.i18n import st
from glassformer.start import thumbnails
from glassformer.start.thumbnails import MOST_STEPS
from glassformer.state import session
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Anatomy, Stack, anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


_RULES = """
.st-key-examples { row-gap: 0.375rem; column-gap: 0.5rem; }
.st-key-examples button {
  min-height: 2rem; padding: 0 0.7rem; border: 1px solid rgb(128 128 128 / 35%) !important; border-radius: 1rem;
}
.st-key-examples button p { font-size: 0.875rem; }
.st-key-start_diagram { gap: 0.55rem; margin-top: 0.25rem; }
.st-key-start_diagram :is(:--markdown, :--caption) {
  margin-bottom: 0;
}
[class*="st-key-lane_encoder"] { --lane: 40 140 200; }
[class*="st-key-lane_decoder"] { --lane: 220 112 30; }
[class*="st-key-lane_"] { gap: 0.25rem; }
.st-key-start_diagram :is(:--caption, :--markdown) p {
  margin: 0; max-width: none;
}
.st-key-lane_head_encoder, .st-key-lane_head_decoder { gap: 0.75rem; row-gap: 0.25rem; }
[class*="st-key-pieces_"] { flex: 0 1 auto; min-width: 0; max-height: 3.6rem; overflow-y: auto; }
[class*="st-key-pieces_"] :--badge { font-family: monospace; font-size: 0.85rem; margin-right: 0.1rem; }
@media (min-width: 641px) { .st-key-page_head h1 { font-size: 1.75rem !important; } }
[class*="st-key-text_"] p {
  font-family: "Source Serif", "PingFang SC", "Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC", serif;
  font-size: 1.15rem;
}
.st-key-handed_over p { text-align: right; padding-right: 37%; }
[class*="st-key-lane_blocks_"], [class*="st-key-lane_layers_"] {
  display: flex; flex-flow: row nowrap; gap: 1.15rem; align-items: stretch; width: 100%;
}
[class*="st-key-lane_layers_"] {
  padding: 0.45rem 0.15rem 0.45rem 0.45rem; border: 1px dashed rgb(var(--lane) / 55%); border-radius: 0.5rem;
  position: relative; min-width: 0; width: auto !important;
}
:--layout:has(> [class*="st-key-block_"]) {
  display: flex; flex: 1 1 0 !important; min-width: 0;
}
:--layout:has(> .st-key-lane_layers_encoder) { flex: 2 1 0 !important; min-width: 0; }
:--layout:has(> .st-key-lane_layers_decoder) { flex: 4.6 1 0 !important; min-width: 0; }
[class*="st-key-lane_layers_"] > :--element {
  width: 3.1rem !important; flex: none; align-self: center; text-align: center; margin-left: -0.9rem;
}
[class*="st-key-block_"] {
  position: relative; padding: 0.55rem 0.65rem; gap: 0.3rem !important; border-radius: 0.4rem;
  border: 1px solid rgb(var(--lane) / 55%);
  background: rgb(var(--lane) / 6%); justify-content: space-between; flex: 1 1 auto; min-width: 0;
}
[class*="st-key-block_"]:hover { background: rgb(var(--lane) / 14%); border-color: rgb(var(--lane)); }
[class*="st-key-block_"]:focus-within { outline: 2px solid rgb(var(--lane)); outline-offset: 1px; }
[class*="st-key-block_"]::before {
  content: "→"; position: absolute; left: -1.12rem; top: calc(50% - 0.75em); opacity: 0.55;
}
[class*="st-key-block_"][class*="_embedding"]::before { content: none; }
[class*="st-key-lane_layers_"] > :first-child [class*="st-key-block_"]::before { left: -1.6rem; }
[class*="st-key-block_"] * { position: static !important; }
[class*="st-key-block_"] a { padding: 0; margin: 0; background: none !important; }
[class*="st-key-block_"] a::after { content: ""; position: absolute; inset: 0; }
[class*="st-key-block_"] a span { white-space: normal; overflow: visible; }
[class*="st-key-block_"] a p { font-weight: 600; font-size: 0.95rem; line-height: 1.3; white-space: normal; }
[class*="st-key-block_"] :--caption p { font-size: 0.8rem; line-height: 1.3; }
[class*="st-key-lane_layers_"] [class*="st-key-block_"] { padding: 0.5rem; }
[class*="st-key-lane_layers_"] :--caption p { font-size: 0.75rem !important; }
.st-key-ways { gap: 0.75rem; margin-top: 0.25rem; }
.st-key-ways :--element { width: auto !important; flex: 1 1 0 !important; }
.st-key-ways a {
  padding: 0.55rem 0.8rem; border: 1px solid rgb(128 128 128 / 40%); border-radius: 0.4rem; justify-content: center;
}
.st-key-ways a p { font-weight: 600; }
@media (max-width: 900px) {
  [class*="st-key-lane_blocks_"], [class*="st-key-lane_layers_"] { flex-wrap: wrap; gap: 0.5rem; }
  :--layout:has(> [class*="st-key-block_"]) { flex: 1 1 8.5rem !important; }
  :--layout:has(> [class*="st-key-lane_layers_"]) { flex: 1 1 100% !important; }
  [class*="st-key-block_"]::before { content: none; }
  [class*="st-key-lane_layers_"] > :--element { width: 100% !important; margin: 0; }
  .st-key-examples { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 0.25rem; }
  .st-key-examples > * { flex-shrink: 0; }
  .st-key-examples button :is(:--markdown, p) { white-space: normal; }
  .st-key-handed_over p { text-align: left; padding: 0; }
  .st-key-ways { flex-direction: column; }
}
.gf-of-source { --lane: 40 140 200; }
.gf-cells {
  display: grid; grid-template-columns: repeat(var(--columns), minmax(2px, 1fr)); gap: 1px; height: 2.1rem;
  max-width: calc(var(--columns) * 0.9rem);
}
.gf-cells i { background: rgb(var(--lane)); opacity: calc(0.07 + 0.93 * var(--v)); min-height: 0; }
.gf-cells i.gf-closed {
  background: repeating-linear-gradient(45deg, rgb(128 128 128 / 80%) 0 1px, transparent 1px 4px); opacity: 1;
}
.gf-bars { display: grid; height: 3rem; font-size: 0.75rem; line-height: 1rem; }
.gf-frame {
  grid-area: 1 / 1; display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: 0.25rem; opacity: 0;
}
.gf-frame.gf-at-rest { opacity: 1; }
.gf-frame span {
  white-space: nowrap; overflow: hidden; font-family: monospace;
  background: linear-gradient(rgb(var(--lane) / 45%) 0 0) no-repeat 0 60% / calc(var(--p) * 100%) 75%;
}
.gf-frame b { font-weight: 400; font-variant-numeric: tabular-nums; }
@media (prefers-reduced-motion: no-preference) {
  .gf-passing i { animation: gf-come 0.3s ease-out calc(var(--n, 0) * 0.35s) backwards; }
  .gf-passing .gf-frame { animation: gf-show 0.35s step-end calc(var(--n) * 0.35s); }
  .gf-passing .gf-frame.gf-at-rest { animation: gf-wait calc(var(--n) * 0.35s) step-end; }
  [class*="st-key-pieces_decoder"]:not([class*="_guess"]) > :last-child :--badge {
    animation: gf-come 0.3s ease-out backwards;
  }
}
@keyframes gf-come { from { opacity: 0; } }
@keyframes gf-show { from, to { opacity: 1; } }
@keyframes gf-wait { from, to { opacity: 0; } }
"""

_PIECE = '[class*="st-key-pieces_decoder"] > :last-child :--badge'


def _style() -> None:
    """Put the rules into the page; those that say when a piece comes are one for each step of the pass."""
    late = [f"{_PIECE}:nth-of-type(n + {n + 1}) {{ animation-delay: {n * 0.35:.2f}s; }}" for n in range(MOST_STEPS + 1)]
    st.html(styled(f"<style>{_RULES}{''.join(late)}</style>"))


_READS = say("The encoder reads")
_WRITES = say("The decoder writes")


@dataclass(frozen=True)
class StartBlock:
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
    blocks: tuple[StartBlock, ...]  # in the order of the computation


def lanes(parts: Anatomy) -> tuple[Lane, ...]:
    """The lanes of a model, the encoder's before the decoder's."""
    return tuple(
        Lane(stack, _READS if stack.name == "encoder" else _WRITES, tuple(_blocks(stack))) for stack in parts.stacks
    )


def _blocks(stack: Stack) -> Iterator[StartBlock]:
    side: dict[str, object] = {"side": SIDE_OF[stack.name]}
    yield StartBlock(
        "embedding", say("Each piece becomes numbers"), say("Embedding"), "inside", side | {"inside_panel": "pieces"}
    )
    yield StartBlock(
        "positions",
        say("Each piece's position is added"),
        say("Positions"),
        "positions",
        side | {"positions_panel": "table"},
    )
    layer: dict[str, object] = {"panel": "overview", "layer": None, "head": None}
    if stack.name == "encoder":
        yield StartBlock(
            "self_attn", say("What each piece means in context"), say("Self-attention"), "attention",
            layer | {"kind": "encoder"}, repeated=True,
        )  # fmt: skip
    else:
        yield StartBlock(
            "mask", say("No looking ahead"), say("Causal mask"), "masks",
            {"masks_panel": "masks", "mask": "causal"}, repeated=True,
        )  # fmt: skip
        yield StartBlock(
            "self_attn", say("What has been written so far"), say("Self-attention"), "attention",
            layer | {"kind": "decoder"}, repeated=True,
        )  # fmt: skip
    if "cross_attn" in stack.sublayers:
        yield StartBlock(
            "cross_attn", say("Where to look in the source"), say("Cross-attention"), "attention",
            layer | {"kind": "cross"}, repeated=True,
        )  # fmt: skip
    yield StartBlock(
        "ffn", say("Each piece is processed separately"), say("Feed-forward"), "inside",
        side | {"inside_panel": "ffn"}, repeated=True,
    )  # fmt: skip
    if stack.name == "decoder":
        yield StartBlock("output", say("Which piece comes next"), say("Output layer"), "step")


MOST_PIECES = 200


def draw(run: OpenRun) -> None:
    """Draw a lane for each stack, what the encoder hands over between them."""
    _style()
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
        with st.container(key=run.key(f"{page_style.LANE}_head_{name}"), horizontal=True, vertical_alignment="center"):
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


def _block(run: OpenRun, lane: Lane, block: StartBlock) -> None:
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
            "checkpoints", say("Examine your own checkpoint"), address(checkpoint, link), icon=":material/folder_open:"
        )
