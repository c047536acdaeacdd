"""What is looked at; it decides no result.

A field is declared once, in `View`: `layer: int | None = place("layer", MAX_LAYER)` says its default, its name in an
address, and how it is read there and written back. The session keeps it, and `ui.shared.choices` draws its control.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from transformer.runs.query import MAX_SEED, MAX_TOP_K
from transformer.runs.trace import Kind
from ui.state.address import Reader
from ui.state.fields import (
    choice,
    count,
    either,
    flag,
    integer,
    number,
    parameters,
    place,
    places,
    read_fields,
    text,
    write_fields,
)

Aggregate = Literal["mean", "max", "rollout"]
AttentionPanel = Literal["overview", "head", "flow", "walk", "table"]
PositionsPanel = Literal["table", "similarity", "shift", "sentence", "rotations", "pair", "distance"]
MasksPanel = Literal["masks", "one_row", "checks"]
SearchPanel = Literal["tree", "sampling", "draws"]
Rounds = Literal["results", "all", "step"]
DoctorPanel = Literal["findings", "parameters"]
InsidePanel = Literal["model", "stream", "lens", "ffn", "pieces"]
MattersPanel = Literal["heads", "pieces", "logit"]
Effect = Literal["log_prob", "probability", "kl", "pieces"]
EffectAt = Literal["output", "step"]
Tensors = Literal["all", "not_finite", "constant"]
Listed = Literal["all", "unknown", "cut", "problem"]
LineOrder = Literal["file", "chrf", "log_prob", "entropy", "ratio", "repeated", "unknown"]
MaskName = Literal["source", "target", "causal", "decoder", "cross"]
Side = Literal["source", "target"]
Depths = Literal["layer", "sublayer"]
LensColour = Literal["probability", "rank"]
Unsureness = Literal["entropy", "ten", "rest"]
Nearness = Literal["cosine", "distance"]
Mistake = Literal[
    "auto", "leak", "inverted", "axis", "scale", "twice", "positions", "shifted", "heads", "norms", "nan", "residual",
    "embedding",
]  # fmt: skip
From = Literal["zero", "mean"]
Compared = Literal["auto", "changed", "sentences", "checkpoints", "branches", "heads", "ways"]

Slot = Literal["", "b-"]
"""Where a page draws a run: begins the keys of all that is drawn there. Each slot has a view of its own."""

MAIN: Final[Slot] = ""
"""The slot of a page that draws one run. Its view alone stands in the address; its keys are the bare names."""

SECOND: Final[Slot] = "b-"
"""The slot beside it, where a page compares two runs."""

MAX_STEP = 1_000_000  # the run says how many steps there are
MAX_LAYER = 1000
MAX_PLACE = 32_768
MAX_DIMS = 12
MOST_HEADS = 128
MOST_COMPANIONS = 3
MOST_DRAWS = 200
LONGEST_NAME = 200  # characters of a parameter or a checkpoint


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at. All pages share it.

    Attributes:
        step: The decoding step, from 0.
        layer: Layer from 0, None for all layers together.
        head: Head from 0, None for all heads together.
        query, key: The cell that is looked at, row and column from 0; None if none was chosen.
        guess: Hide what comes next until it was guessed.
        unsure: How the Step page measures how unsure a step was.
        log_scale: Colours go by the logarithm of the weight; None where that helps.
        own_scale: Colours go from 0 to the largest weight of each head instead of to 1.
        words: Pieces are merged to words.
        hide_special: Special pieces are left out.
        cosine: The Positions page compares directions instead of dot products.
        follow: The flow view shows the row of the step that is looked at, and moves with it.
        fold: Equal layers of the diagram are drawn once.
        apart: The table of positions has its sines before its cosines.
        kind: Which attention.
        heads: The heads that the part Flow shows, from 0, where no single head is chosen; none of them for all.
        aggregate: What stands for all heads together.
        panel: Which part of the Attention page.
        positions_panel: Which part of the Positions page.
        side: Whose positions and embeddings.
        shift: By how many positions the Positions page shifts, from 1.
        dims: Dimensions whose curves are drawn, from 0; none for a choice of the page's own.
        masks_panel: Which part of the Masks page.
        mask: Which mask.
        sentence: Which sentence of the batch, from 0.
        inside_panel: Which part of the Inside page.
        doctor_panel: Which part of the Doctor page.
        matters_panel: Which part of the page What matters.
        mistake: Which card of the page What goes wrong; "auto" is the first that can be shown.
        effect: How it measures what taking a head away changes.
        effect_at: On the whole output or at the step that is looked at.
        neuron: Neuron of a feed-forward layer, from 0; None for the page's own choice.
        pads: How many pads the Masks page adds, from 1.
        measure: What the table of heads is drawn by; a name of `ui.attention.head_measures`.
        changed: Position whose piece the causality check changes, from 0; None for its own choice.
        drawn: How many positions the Positions page draws; None for its own choice.
        tokens: Length for which the Inside page counts costs; None for the sentence's.
        norm: Which norm of a stack, from 0 in the order of the pass.
        depths: Where the logit lens reads.
        lens_colour: What colours the lens of all steps.
        nearness: What makes an embedding near.
        piece: A piece of a table of embeddings, as "source.17"; "" for one of the sentence.
        hidden: The token that an encoder with an MLM head is not shown, from 0; None for the page's own choice.
        tensor: A parameter by its name; "" for the page's own choice.
        tensors: Which parameters are listed.
        names: Words that the names of those have.
        against: Name of the checkpoint that the parameters are compared with; "" for none.
        log_counts: The counts of a histogram go by their logarithm.
        line: A line of a file of sentences, from 0; None for none.
        listed: Which lines of it are listed.
        line_order: In which order; the worst first, where it is not that of the file.
        holding: Words that lines have.
        begin: Where the line of integrated gradients begins.
        rival: Id of the piece whose logit is taken off that of the piece written; None for none.
        term: A term of the glossary, by its English name; "" for none.
        at: The piece of a reference that is looked at, from 0; None for the one of the step.
        ends: The end piece after the reference of a decoder alone is judged, too.
        compared: What the page Compare compares; "auto" for what the link says of a second run.
        search_panel: Which part of the page How pieces are chosen.
        rounds: Which rounds of a beam search its tree has: up to its last result, all, or up to the step.
        with_beam: A beam search is drawn though the run decodes in another way.
        try_temperature, try_k, try_p: How sampling would draw, as in `transformer.Sampling`; None for the run's own.
        draws: How many draws are made of a sentence.
        first_seed: The seed of the first of them.
        opened_seed: The one of them that is looked at; None for none.
    """

    step: int = place("step", MAX_STEP, 0)
    layer: int | None = place("layer", MAX_LAYER)
    head: int | None = place("head", MAX_LAYER)
    query: int | None = place("query", MAX_PLACE)
    key: int | None = place("key", MAX_PLACE)
    guess: bool = flag("guess")
    unsure: Unsureness = choice("unsure", "entropy")
    log_scale: bool | None = either("log")
    own_scale: bool = flag("own")
    words: bool = flag("words")
    hide_special: bool = flag("hide")
    cosine: bool = flag("cosine")
    fold: bool = flag("fold")
    apart: bool = flag("apart")
    kind: Kind = choice("kind", "cross")
    heads: tuple[int, ...] = places("heads", most=MAX_LAYER, count=MOST_HEADS)
    follow: bool = flag("follow")
    aggregate: Aggregate = choice("together", "mean")
    panel: AttentionPanel = choice("panel", "overview")
    positions_panel: PositionsPanel = choice("positions", "table")
    side: Side = choice("side", "source")
    shift: int = integer("shift", MAX_PLACE, 1)
    dims: tuple[int, ...] = places("dims", most=MAX_PLACE, count=MAX_DIMS)
    masks_panel: MasksPanel = choice("masks", "masks")
    mask: MaskName = choice("mask", "causal")
    sentence: int = place("sentence", MOST_COMPANIONS + 1, 0)
    inside_panel: InsidePanel = choice("inside", "model")
    neuron: int | None = place("neuron", MAX_PLACE)
    pads: int = integer("pads", MAX_PLACE, 4)
    measure: str = text("measure", "entropy_share")
    changed: int | None = place("changed", MAX_PLACE)
    drawn: int | None = integer("drawn", MAX_PLACE)
    tokens: int | None = integer("tokens", MAX_PLACE)
    norm: int = place("norm", MAX_PLACE, 0)
    depths: Depths = choice("depths", "layer")
    lens_colour: LensColour = choice("lens", "probability")
    nearness: Nearness = choice("near", "cosine")
    piece: str = text("piece")
    hidden: int | None = place("hidden", MAX_PLACE)
    doctor_panel: DoctorPanel = choice("doctor", "findings")
    matters_panel: MattersPanel = choice("matters", "heads")
    mistake: Mistake = choice("mistake", "auto")
    effect: Effect = choice("effect", "log_prob")
    effect_at: EffectAt = choice("effect_at", "output")
    tensor: str = text("tensor", most=LONGEST_NAME)
    tensors: Tensors = choice("tensors", "all")
    names: str = text("names", most=LONGEST_NAME)
    against: str = text("against", most=LONGEST_NAME)
    log_counts: bool = flag("counts")
    line: int | None = place("line", MAX_STEP)
    listed: Listed = choice("listed", "all")
    line_order: LineOrder = choice("order", "file")
    holding: str = text("holding", most=LONGEST_NAME)
    begin: From = choice("begin", "zero")
    rival: int | None = place("rival", MAX_STEP)
    term: str = text("term")
    at: int | None = place("at", MAX_PLACE)
    ends: bool = flag("ends")
    compared: Compared = choice("compare", "auto")
    search_panel: SearchPanel = choice("search", "tree")
    rounds: Rounds = choice("rounds", "results")
    with_beam: bool = flag("with_beam")
    try_temperature: float | None = number("try_temp", 0.05, 5.0)
    try_k: int | None = count("try_k", MAX_TOP_K)
    try_p: float | None = number("try_p", 0.01, 1.0)
    draws: int = count("draws", MOST_DRAWS, 50)
    first_seed: int = count("first_seed", MAX_SEED - MOST_DRAWS, 0)
    opened_seed: int | None = count("opened_seed", MAX_SEED)


NAMES = parameters(View)
"""The parameters of an address that belong to the view."""


def read_view(reader: Reader) -> View:
    """Read the view's query parameters; what is wrong is put right and noted in the reader."""
    return View(**read_fields(View, reader))


def write_view(view: View) -> dict[str, object]:
    """The query parameters of a view; None where it is at its default."""
    return write_fields(view)
