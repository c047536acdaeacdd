"""What is looked at, and how an address says it; it decides no result.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from transformer.runs.trace import Kind
from ui.state.address import MAX_WORD, Reader

Aggregate = Literal["mean", "max", "rollout"]
Panel = Literal["overview", "head", "flow", "walk", "table"]
PositionsPanel = Literal["table", "similarity", "shift", "sentence"]
MasksPanel = Literal["masks", "one_row", "checks"]
InsidePanel = Literal["model", "stream", "lens", "ffn", "pieces"]
MaskName = Literal["source", "target", "causal", "decoder", "cross"]
Side = Literal["source", "target"]
Depths = Literal["layer", "sublayer"]
LensColour = Literal["probability", "rank"]
Nearness = Literal["cosine", "distance"]

MAX_STEP = 1_000_000  # the run says how many steps there are
MAX_LAYER = 1000
MAX_PLACE = 32_768
MAX_DIMS = 12
MOST_COMPANIONS = 3


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at. All pages share it.

    Attributes:
        step: The decoding step, from 0.
        layer: Layer from 0, None for the mean over all layers.
        head: Head from 0, None for all heads together.
        guess: Hide what comes next until it was guessed.
        kind: Which attention.
        aggregate: What stands for all heads together.
        query, key: The cell that is looked at, row and column from 0; None if none was chosen.
        log_scale: Colours go by the logarithm of the weight.
        own_scale: Colours go from 0 to the largest weight of each head instead of to 1.
        words: Pieces are merged to words.
        hide_special: Special pieces are left out.
        panel: Which part of the Attention page.
        positions_panel: Which part of the Positions page.
        side: Whose positions and embeddings.
        shift: By how many positions the Positions page shifts, from 1.
        dims: Dimensions whose curves are drawn, from 0; none for a choice of the page's own.
        masks_panel: Which part of the Masks page.
        mask: Which mask.
        sentence: Which sentence of the batch, from 0.
        inside_panel: Which part of the Inside page.
        cosine: The Positions page compares directions instead of dot products.
        pads: How many pads the Masks page adds, from 1.
        measure: What the table of heads is drawn by; a name of `ui.attention.head_measures`.
        neuron: Neuron of a feed-forward layer, from 0; None for the page's own choice.
        drawn: How many positions the Positions page draws; None for its own choice.
        changed: Position whose piece the causality check changes, from 0; None for its own choice.
        tokens: Length for which the Inside page counts costs; None for the sentence's.
        norm: Which norm of a stack, from 0 in the order of the pass.
        depths: Where the logit lens reads.
        lens_colour: What colours the lens of all steps.
        nearness: What makes an embedding near.
        fold: Equal layers of the diagram are drawn once.
        piece: A piece of a table of embeddings, as "source.17"; "" for one of the sentence.
    """

    step: int = 0
    layer: int | None = None
    head: int | None = None
    guess: bool = False
    kind: Kind = "cross"
    aggregate: Aggregate = "mean"
    query: int | None = None
    key: int | None = None
    log_scale: bool = False
    own_scale: bool = False
    words: bool = False
    hide_special: bool = False
    panel: Panel = "overview"
    positions_panel: PositionsPanel = "table"
    side: Side = "source"
    shift: int = 1
    dims: tuple[int, ...] = ()
    masks_panel: MasksPanel = "masks"
    mask: MaskName = "source"
    sentence: int = 0
    inside_panel: InsidePanel = "model"
    neuron: int | None = None
    cosine: bool = False
    pads: int = 4
    measure: str = "entropy_share"
    drawn: int | None = None
    changed: int | None = None
    tokens: int | None = None
    norm: int = 0
    depths: Depths = "layer"
    lens_colour: LensColour = "probability"
    nearness: Nearness = "cosine"
    piece: str = ""
    fold: bool = False


_PLAIN = View()
_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "kind": ("kind", get_args(Kind)),
    "aggregate": ("together", get_args(Aggregate)),
    "panel": ("panel", get_args(Panel)),
    "positions_panel": ("positions", get_args(PositionsPanel)),
    "side": ("side", get_args(Side)),
    "masks_panel": ("masks", get_args(MasksPanel)),
    "mask": ("mask", get_args(MaskName)),
    "inside_panel": ("inside", get_args(InsidePanel)),
    "depths": ("depths", get_args(Depths)),
    "lens_colour": ("lens", get_args(LensColour)),
    "nearness": ("near", get_args(Nearness)),
}
_FLAGS = {"guess": "guess", "log_scale": "log", "own_scale": "own", "words": "words", "hide_special": "hide",
          "cosine": "cosine", "fold": "fold"}  # fmt: skip
_PLACES = {"layer": "layer", "head": "head", "query": "query", "key": "key", "neuron": "neuron",
           "changed": "changed"}  # fmt: skip
NAMES = (*(name for name, _ in _CHOICES.values()), *_FLAGS.values(), *_PLACES.values(),
         "drawn", "tokens", "step", "shift", "dims", "sentence", "pads", "measure", "norm", "piece")  # fmt: skip
"""The parameters of an address that belong to the view."""


def write_view(view: View) -> dict[str, object]:
    """The query parameters of a view; None where it is at its default."""
    values: dict[str, object] = {
        "step": view.step + 1 if view.step else None,
        "shift": None if view.shift == _PLAIN.shift else view.shift,
        "dims": ".".join(str(dim + 1) for dim in view.dims) or None,
        "sentence": view.sentence + 1 if view.sentence else None,
        "pads": None if view.pads == _PLAIN.pads else view.pads,
        "measure": None if view.measure == _PLAIN.measure else view.measure,
        "norm": view.norm + 1 if view.norm else None,
        "piece": view.piece or None,
        "drawn": view.drawn,
        "tokens": view.tokens,
    }
    for field, name in _PLACES.items():
        place = getattr(view, field)
        values[name] = None if place is None else place + 1
    for field, name in _FLAGS.items():
        values[name] = 1 if getattr(view, field) else None
    for field, (name, _) in _CHOICES.items():
        chosen = getattr(view, field)
        values[name] = None if chosen == getattr(_PLAIN, field) else chosen
    return values


def read_view(reader: Reader) -> View:
    """Read the view's query parameters; what is wrong is put right and noted in the reader."""

    def choice(field: str) -> str:
        name, options = _CHOICES[field]
        return reader.choice(name, options, getattr(_PLAIN, field))

    return View(
        step=reader.place("step", MAX_STEP) or 0,
        layer=reader.place("layer", MAX_LAYER),
        head=reader.place("head", MAX_LAYER),
        query=reader.place("query", MAX_PLACE),
        key=reader.place("key", MAX_PLACE),
        **{field: reader.flag(name) for field, name in _FLAGS.items()},
        kind=cast(Kind, choice("kind")),
        aggregate=cast(Aggregate, choice("aggregate")),
        panel=cast(Panel, choice("panel")),
        positions_panel=cast(PositionsPanel, choice("positions_panel")),
        side=cast(Side, choice("side")),
        shift=reader.integer("shift", 1, MAX_PLACE) or 1,
        dims=reader.places("dims", most=MAX_PLACE, count=MAX_DIMS),
        masks_panel=cast(MasksPanel, choice("masks_panel")),
        mask=cast(MaskName, choice("mask")),
        sentence=reader.place("sentence", MOST_COMPANIONS + 1) or 0,
        inside_panel=cast(InsidePanel, choice("inside_panel")),
        neuron=reader.place("neuron", MAX_PLACE),
        pads=reader.integer("pads", 1, MAX_PLACE) or _PLAIN.pads,
        measure=reader.text("measure", MAX_WORD) or _PLAIN.measure,
        changed=reader.place("changed", MAX_PLACE),
        drawn=reader.integer("drawn", 1, MAX_PLACE),
        tokens=reader.integer("tokens", 1, MAX_PLACE),
        norm=reader.place("norm", MAX_PLACE) or 0,
        depths=cast(Depths, choice("depths")),
        lens_colour=cast(LensColour, choice("lens_colour")),
        nearness=cast(Nearness, choice("nearness")),
        piece=reader.text("piece", MAX_WORD) or "",
    )
