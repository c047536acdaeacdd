"""What is looked at; it decides no result.

A field is declared once, in `View`: `layer: int | None = place("layer", MAX_LAYER)` says its default, its name in an
address, and how it is read there and written back. The session keeps it, and `ui.shared.choices` draws its control.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass
from typing import Final, Literal

from transformer.analysis.drafts import Kind as DraftKind
from transformer.analysis.mask_checks import MaskName
from transformer.runs.query import MAX_SEED, MAX_TOP_K
from transformer.runs.trace import Kind
from ui.state.fields import choice, count, either, flag, integer, number, parameters, place, places, text

Aggregate = Literal["mean", "max", "rollout"]
AttentionPanel = Literal["overview", "head", "flow", "walk", "table", "training"]
CorpusPanel = Literal["heads", "head", "search", "joined", "beside"]
Sought = Literal["any", "punctuation", "piece", "measure", "attends", "owes"]
TextIn = Literal["source", "target", "output"]
Lit = Literal["piece", "line", "near", "token"]
PointsBy = Literal["side", "place", "group"]
TrainingPanel = Literal["curves", "sentence", "watch"]
PositionsPanel = Literal["table", "similarity", "shift", "sentence", "rotations", "pair", "distance"]
MasksPanel = Literal["masks", "one_row", "checks"]
SearchPanel = Literal["tree", "sampling", "draws", "drafts"]
Rounds = Literal["results", "all", "step"]
DoctorPanel = Literal["findings", "parameters"]
InsidePanel = Literal["model", "stream", "lens", "ffn", "pieces", "fast"]
MattersPanel = Literal["heads", "pieces", "logit"]
Effect = Literal["log_prob", "probability", "kl", "pieces"]
EffectAt = Literal["output", "step"]
Tensors = Literal["all", "not_finite", "constant"]
Listed = Literal["all", "unknown", "cut", "problem"]
LineOrder = Literal["file", "chrf", "log_prob", "entropy", "ratio", "repeated", "unknown"]
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
MAX_LINE = 10**9
MAX_LAYER = 1000
MAX_PLACE = 32_768
MAX_DIMS = 12
MOST_HEADS = 128
MOST_COMPANIONS = 3
MOST_DRAWS = 200
LONGEST_NAME = 200  # characters of a parameter or a checkpoint


@dataclass(frozen=True, kw_only=True)
class View:
    """What is looked at. All pages share it."""

    step: int = place("step", MAX_STEP, 0)  # the decoding step, from 0
    layer: int | None = place("layer", MAX_LAYER)  # layer from 0, None for all layers together
    head: int | None = place("head", MAX_LAYER)  # head from 0, None for all heads together
    # The cell that is looked at, row and column from 0; None if none was chosen.
    query: int | None = place("query", MAX_PLACE)
    key: int | None = place("key", MAX_PLACE)
    guess: bool = flag("guess")  # hide what comes next until it was guessed
    unsure: Unsureness = choice("unsure", "entropy")  # how the Step page measures how unsure a step was
    log_scale: bool | None = either("log")  # colours go by the logarithm of the weight; None where that helps
    own_scale: bool = flag("own")  # colours go from 0 to the largest weight of each head instead of to 1
    words: bool = flag("words")  # pieces are merged to words
    hide_special: bool = flag("hide")  # special pieces are left out
    cosine: bool = flag("cosine")  # the Positions page compares directions instead of dot products
    fold: bool = flag("fold")  # equal layers of the diagram are drawn once
    apart: bool = flag("apart", default=True)  # the table of positions has its sines before its cosines
    kind: Kind = choice("kind", "cross")  # which attention
    # The heads that the part Flow shows, from 0, where no single head is chosen; none of them for all.
    heads: tuple[int, ...] = places("heads", most=MAX_LAYER, count=MOST_HEADS)
    follow: bool = flag("follow")  # the flow view shows the row of the step that is looked at, and moves with it
    aggregate: Aggregate = choice("together", "mean")  # what stands for all heads together
    panel: AttentionPanel = choice("panel", "overview")  # which part of the Attention page
    positions_panel: PositionsPanel = choice("positions", "table")  # which part of the Positions page
    side: Side = choice("side", "source")  # whose positions and embeddings
    shift: int = integer("shift", MAX_PLACE, 1)  # by how many positions the Positions page shifts, from 1
    # Dimensions whose curves are drawn, from 0; none for a choice of the page's own.
    dims: tuple[int, ...] = places("dims", most=MAX_PLACE, count=MAX_DIMS)
    masks_panel: MasksPanel = choice("masks", "masks")  # which part of the Masks page
    mask: MaskName = choice("mask", "decoder")  # which mask
    # Which sentence of the batch, from 0; None for the first that is padded.
    sentence: int | None = place("sentence", MOST_COMPANIONS + 1)
    inside_panel: InsidePanel = choice("inside", "model")  # which part of the Inside page
    # Neuron of a feed-forward layer, from 0; None for the page's own choice.
    neuron: int | None = place("neuron", MAX_PLACE)
    pads: int = integer("pads", MAX_PLACE, 4)  # how many pads the Masks page adds, from 1
    # What the table of heads is drawn by; a name of `ui.runs.head_measures`.
    measure: str = text("measure", "entropy_share")
    # Position whose piece the causality check changes, from 0; None for its own choice.
    changed: int | None = place("changed", MAX_PLACE)
    # How many positions the Positions page draws; None for its own choice.
    drawn: int | None = integer("drawn", MAX_PLACE)
    # Length for which the Inside page counts costs; None for the sentence's.
    tokens: int | None = integer("tokens", MAX_PLACE)
    tile: int = integer("tile", MAX_PLACE, 1)  # up to which tile of keys a softmax was walked, from 1
    tile_keys: int = integer("tile_keys", MAX_PLACE, 2)  # how many keys a tile has
    block: int = integer("block", MAX_PLACE, 4)  # how many tokens a block of the KV cache has
    norm: int = place("norm", MAX_PLACE, 0)  # which norm of a stack, from 0 in the order of the pass
    depths: Depths = choice("depths", "layer")  # where the logit lens reads
    lens_colour: LensColour = choice("lens", "probability")  # what colours the lens of all steps
    nearness: Nearness = choice("near", "cosine")  # what makes an embedding near
    piece: str = text("piece")  # A piece of a table of embeddings, as "source.17"; "" for one of the sentence
    # The token that an encoder with an MLM head is not shown, from 0; None for the page's own choice.
    hidden: int | None = place("hidden", MAX_PLACE)
    doctor_panel: DoctorPanel = choice("doctor", "findings")  # which part of the Doctor page
    training_panel: TrainingPanel = choice("training", "curves")  # which part of the Training page
    by_step: bool | None = either("steps")  # its curves go by the step, not by the epoch; None where that helps
    matters_panel: MattersPanel = choice("matters", "heads")  # which part of the page What matters
    # Which card of the page What goes wrong; "auto" is the first that can be shown.
    mistake: Mistake = choice("mistake", "auto")
    effect: Effect = choice("effect", "log_prob")  # how it measures what taking a head away changes
    effect_at: EffectAt = choice("effect_at", "output")  # on the whole output or at the step that is looked at
    tensor: str = text("tensor", most=LONGEST_NAME)  # A parameter by its name; "" for the page's own choice
    tensors: Tensors = choice("tensors", "all")  # which parameters are listed
    names: str = text("names", most=LONGEST_NAME)  # words that the names of those have
    # Name of the checkpoint that the parameters are compared with; "" for none.
    against: str = text("against", most=LONGEST_NAME)
    log_counts: bool = flag("counts")  # the counts of a histogram go by their logarithm
    line: int | None = place("line", MAX_LINE)  # A line of a file of sentences, from 0; None for none
    listed: Listed = choice("listed", "all")  # which lines of it are listed
    # In which order; the worst first, where it is not that of the file.
    line_order: LineOrder = choice("order", "file")
    holding: str = text("holding", most=LONGEST_NAME)  # words that lines have
    corpus_panel: CorpusPanel = choice("corpus", "heads")  # which part of the page Over a corpus
    corpus_run: str = text("run")  # the corpus run, by the name of its folder; "" for the page's own choice
    corpus_measure: str = text("over", "entropy_share")  # which measure, of `transformer.corpus.tables.NAMES`
    sought: Sought = choice("sought", "any")  # what a head shall do with the lines that are searched for
    bound: float | None = number("bound", -1e6, 1e6)  # at least so much of it; None for what the page proposes
    below: bool = flag("below")  # at most so much
    looked_at: str = text("looked_at", most=LONGEST_NAME)  # the piece that it looks at
    least_rank: int | None = integer("rank", MAX_STEP)  # of a piece that was predicted, in the lines searched for
    least_loss: float | None = number("loss", 0.0, 1e6)  # of those lines
    text_in: TextIn = choice("in", "source")  # where they hold the words `holding`
    leaf: int = place("leaf", MAX_STEP, 0)  # which page of what was found, from 0
    # The token that was clicked among queries and keys, as "12.query.3": line, side and place, from 1; "" for none.
    spot: str = text("spot")
    lit: Lit = choice("lit", "piece")  # what is selected with it
    lit_piece: str = text("lit_piece", most=LONGEST_NAME)  # all tokens of a piece instead; "" for the one clicked
    points_by: PointsBy = choice("points", "side")  # what colours queries and keys
    second_run: str = text(
        "run2"
    )  # the corpus run beside it, by the name of its folder; "" for the page's own choice
    begin: From = choice("begin", "zero")  # where the line of integrated gradients begins
    # Id of the piece whose logit is taken off that of the piece written; None for none.
    rival: int | None = place("rival", MAX_STEP)
    term: str = text("term")  # A term of the glossary, by its English name; "" for none
    # The piece of a reference that is looked at, from 0; None for the one of the step.
    at: int | None = place("at", MAX_PLACE)
    ends: bool = flag("ends")  # the end piece after the reference of a decoder alone is judged, too
    # What the page Compare compares; "auto" for what the link says of a second run.
    compared: Compared = choice("compare", "auto")
    search_panel: SearchPanel = choice("search", "tree")  # which part of the page How pieces are chosen
    # Which rounds of a beam search its tree has: up to its last result, all, or up to the step.
    rounds: Rounds = choice("rounds", "results")
    with_beam: bool = flag("with_beam")  # A beam search is drawn though the run decodes in another way
    # How sampling would draw, as in `transformer.Sampling`; None for the run's own.
    try_temperature: float | None = number("try_temp", 0.05, 5.0)
    try_k: int | None = count("try_k", MAX_TOP_K)
    try_p: float | None = number("try_p", 0.01, 1.0)
    draws: int = count("draws", MOST_DRAWS, 50)  # how many draws are made of a sentence
    first_seed: int = count("first_seed", MAX_SEED - MOST_DRAWS, 0)  # the seed of the first of them
    opened_seed: int | None = count("opened_seed", MAX_SEED)  # the one of them that is looked at; None for none

    draft: DraftKind = choice("draft", "bits")  # what drafts the output that the model checks
    draft_bits: int = integer("draft_bits", 8, 8)  # of each weight of such a draft
    draft_layers: int | None = integer("draft_layers", MAX_LAYER)  # of the decoder; None for the page's own choice
    ahead: int = count("ahead", MOST_DRAWS, 0)  # most pieces that a draft proposes at once; 0 for all
    with_drafts: bool = flag("with_drafts")  # drafts of a large model are made, too


NAMES = parameters(View)
"""The parameters of an address that belong to the view."""
