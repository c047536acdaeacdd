"""Pictures of the Translate page: candidates of a step, uncertainty by step (entropy and others), attention map.

Entropy is the usual measure of uncertainty, but a tail of thousands of tiny probabilities raises it where a model is
sure, and label smoothing teaches such a tail. So other measures are next to it, and the caption says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import HOW_TO_READ as HOW_TO_READ_CANDIDATES
from glassformer.charts.candidates import HOW_TO_READ_DRAWN, HOW_TO_READ_RULES, Others, candidates_spec
from glassformer.charts.grammar import stroke, upright
from glassformer.charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from glassformer.charts.heatmap import HOW_TO_READ_CLOSED, HOW_TO_READ_PROMPT, follow_steps, heatmap_spec, part_map
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.charts.theme import CLOSED, Spec, literal
from glassformer.runs.map_axes import KIND_NAMES, MapAxes, mask_reason, prompt_row, sides
from glassformer.runs.picture import Page, Part, Plot
from glassformer.runs.viewed_run import N_CANDIDATES, ViewedRun, VisibleTrace, chosen_map, heads_name, is_yours
from glassformer.state.view import place_of
from glassformer.step import BlockName, StepLook, Unsureness
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind
from transformer.runs.distribution import N_BEST, RuleChange, entropy_of_best, entropy_of_smoothed, other_share
from transformer.runs.query import Sampling
from transformer.runs.trace import Candidate, Trace

HOW_TO_READ_ENTROPY = say("The higher the point, the less sure the model was at that step.")
_MOST_MARKED = 48  # steps with a mark each; more marks would run into each other
_ROUNDING = 1e-6  # what float32 probabilities that sum to 1 may lack


@dataclass(frozen=True)
class CandidateList:
    """The candidates of a step as parallel lists, for the chart."""

    pieces: list[str]  # which, the likeliest first; the chosen one is always among them
    probabilities: list[float]  # under the model
    ids: list[int]  # which, the likeliest first; the chosen one is always among them
    ranks: list[int]  # from 1
    # Their probabilities in the distribution that was drawn from; None unless the query samples.
    drawn_from: list[float] | None
    others: Others | None  # all pieces that are not listed, where they could be drawn, too
    rules: list[RuleChange | None]  # what rules of the model make of each; None where they change nothing
    chosen: int | None  # place of the piece that the output has
    how_chosen: str  # how it came to be chosen


def candidate_list(visible: VisibleTrace) -> CandidateList:
    """The most probable pieces of the current step, the chosen one among them."""
    step = visible.trace.step(visible.view.step, top_k=N_CANDIDATES)
    listed = step.candidates
    ranks = list(range(1, len(listed) + 1))
    if len(listed) > N_CANDIDATES:
        ranks[-1] = step.rank
    sampled = isinstance(visible.trace.query.decoding, Sampling)
    yours = is_yours(visible.trace, visible.view.step)
    how = say("forced by you") if yours else say("drawn at random") if sampled else say("chosen")
    if step.forced and step.index >= len(visible.trace.query.forced):
        how = say("forced by the model's settings")
    drawn_from = [c.sampling_probability or 0.0 for c in listed] if sampled else None
    return CandidateList(
        pieces=[c.piece for c in listed],
        probabilities=[c.probability for c in listed],
        ids=[c.id for c in listed],
        ranks=ranks,
        drawn_from=drawn_from,
        others=None if drawn_from is None else _others(visible, listed, drawn_from),
        rules=[c.rule for c in listed],
        chosen=next(i for i, c in enumerate(listed) if c.chosen),
        how_chosen=how,
    )


def _others(visible: VisibleTrace, listed: Sequence[Candidate], drawn_from: Sequence[float]) -> Others:
    count = len(visible.trace.vocabulary) - len(listed)
    rest = 1 - sum(candidate.probability for candidate in listed), 1 - sum(drawn_from)
    probability, drawn = (max(share, 0.0) if share > _ROUNDING else 0.0 for share in rest)
    return Others(count, probability, drawn)


def block_kind(block: BlockName) -> Kind:
    """The attention whose layers and heads are chosen among, of a block of the model."""
    return "encoder" if block == "encoder" else "decoder" if block == "decoder" else "cross"


STEP = Page("step", say("Translate"), kind=lambda view: block_kind(view.of(StepLook).shown_block))
WRITING: Part[ViewedRun] = STEP.part("", lambda run: run if run.trace.n_steps else None)


@WRITING.picture("candidates", say("Candidates for the next token"))
def candidates(run: ViewedRun) -> Plot | None:
    """The most probable pieces of the step, unless they are to be guessed; a click means the id of one."""
    if run.visible.covered:
        return None
    listed = candidate_list(run.visible)
    how_to_read = HOW_TO_READ_CANDIDATES if listed.drawn_from is None else HOW_TO_READ_DRAWN
    return Plot(
        spec=candidates_spec(**vars(listed), title=say("Step {n}: candidates for the next token", n=run.view.step + 1)),
        alt=say(
            "The most probable tokens after {read}, starting with {best}; the token in the output is {chosen}.",
            read=run.trace.row_label(run.visible.row).reads,
            best=listed.pieces[0],
            chosen=listed.pieces[listed.chosen or 0],
        ),
        how_to_read=joined(" ", [how_to_read, HOW_TO_READ_RULES]) if any(listed.rules) else how_to_read,
        clicked=place_of,
    )


@WRITING.picture("entropy", say("How unsure each step was"))
def entropy(run: ViewedRun) -> Plot:
    """How unsure the model was at each step, by the measure that is chosen; a click means a step."""
    n_steps, measure = run.visible.n_steps - int(run.visible.covered), MEASURES[run.view.of(StepLook).unsure]
    values = _values(run.trace, run.view.of(StepLook).unsure)[:n_steps]
    labels = run.visible.row_labels()[run.trace.first_row :][:n_steps]
    drawn = unsure_curve(values, labels, run.view.step if run.view.step < n_steps else None, measure)
    read = joined(" ", [HOW_TO_READ_ENTROPY, *_meaning(run)])
    return Plot(spec=drawn["spec"], alt=measure.alt, how_to_read=read, clicked=place_of)


# ------------------------------------------------------------------------------------------------ where it looks


@dataclass(frozen=True, eq=False)
class SeenMap:
    """A map, with what its rows and columns are."""

    run: ViewedRun
    visible: VisibleTrace  # what is drawn of it; a run may read the output of another
    kind: Kind
    weights: np.ndarray  # [query, key]
    allowed: np.ndarray  # bool [query, key], True = may attend
    sides: MapAxes

    @property
    def closed(self) -> list[str]:
        """How to read closed cells, if there are any."""
        return [] if self.allowed.all() else [HOW_TO_READ_CLOSED]

    def spec(
        self,
        title: str,
        *,
        mask_reason: str = CLOSED,
        marked_row: int | None = None,
        limits: tuple[float, float] = (0.0, 1.0),
        rows_sum_to_one: bool = True,
    ) -> Spec:
        """The figure."""
        return heatmap_spec(
            self.weights,
            queries=self.sides.queries,
            keys=self.sides.keys,
            title=title,
            query_axis=self.sides.query_axis,
            key_axis=self.sides.key_axis,
            allowed=self.allowed,
            mask_reason=mask_reason,
            marked_row=marked_row,
            colour=self.sides.key_side,
            limits=limits,
            rows_sum_to_one=rows_sum_to_one,
            note=self.visible.trace.rows_note(self.kind),
        )

    def mark(self, figure: Spec) -> None:
        """Mark the row of each step, and where a prompt ends."""
        n_rows, n_columns = self.weights.shape
        if self.kind != "encoder":
            rows = [self.visible.trace.row_of(step) for step in range(self.visible.n_steps)]
            follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
        if (prompt := prompt_row(self.run, self.kind)) is not None:
            part_map(figure, row=prompt, column=prompt + 1 if prompt + 1 < n_columns else None)

    def alt(self, title: str) -> str:
        """The map in a sentence."""
        of = self.sides
        return say("{map}. Rows: {rows}; columns: {columns}.", map=title, rows=of.query_axis, columns=of.key_axis)


def seen_map(run: ViewedRun, kind: Kind, visible: VisibleTrace | None = None) -> SeenMap:
    """The map; of the run itself, if nothing else is looked at. Errors as of `VisibleTrace.each`."""
    visible = visible or run.visible
    axes = sides(visible, kind)
    seen = slice(len(axes.queries)), slice(len(axes.keys))
    allowed = visible.trace.mask(kind, visible.view.layer)[seen]
    return SeenMap(run, visible, kind, chosen_map(visible, kind)[seen], allowed, axes)


@WRITING.picture("cross_map", say("Where all steps look"), follows="still")
def cross_map(run: ViewedRun) -> Plot:
    """An attention of all steps, the current one framed; at first the last: in a decoder-only model its own."""
    block, there = run.view.of(StepLook).shown_block, run.trace.kinds
    kind = next((one for one in there if one == block), there[-1])
    drawn, whose = seen_map(run, kind), heads_name(run.trace, run.view, kind)
    title = say("{kind}: {whose}", kind=KIND_NAMES[kind], whose=whose)
    figure = drawn.spec(title, mask_reason=mask_reason(run.checkpoint, kind))
    drawn.mark(figure)
    parted = [HOW_TO_READ_PROMPT] * (prompt_row(run, kind) is not None)
    read = joined(" ", [HOW_TO_READ_MAP, *drawn.closed, *parted])
    return Plot(spec=figure, alt=drawn.alt(title), how_to_read=read)


# ------------------------------------------------------------------------------------------------ how unsure


@dataclass(frozen=True)
class StepMeasure:
    """A measure of how unsure a step was: its name, and what its numbers mean."""

    label: str
    axis: str
    unit: str
    alt: str


def unsure_curve(values: np.ndarray, labels: Sequence[str], step: int | None, measure: StepMeasure) -> dict[str, Any]:
    """A measure at each step, whose label hover has; the current one is marked."""
    name, unit, n, many = measure.axis, measure.unit, len(values), len(values) > _MOST_MARKED
    beside = max(0.5, n / 40)  # steps of room for the mark of the first and of the last
    ticks = {"dtick": 1} if n <= 20 else {"nticks": 10}
    across = Places(
        say("Step"), np.arange(1, n + 1), say("step {n}", n="%{x}"), {"range": [1 - beside, n + beside]} | ticks
    )
    top = max(1.0, 1.12 * float(np.max(values, initial=0, where=np.isfinite(values))))
    scale = Scale(say("{measure} ({unit})", measure=name, unit=unit) if unit else name, {"range": [0, top]})
    look = stroke(theme.TARGET_COLOR, 1.25 if many else 2, size=2 if many else 7) | {"cliponaxis": False}
    number = joined(" ", ["%{y:.2f}", unit]) if unit else "%{y:.3f}"
    texts = [literal(label) for label in labels]
    line = Series(name, values, look, number=number, texts=texts, clicks=range(n), chosen=step)
    here = [] if step is None else [upright(step + 1)]
    drawn = lines(entropy.title, across, scale, [line], height=280, shapes=here)
    # A step among many is found by its column: its point is too small to be hit.
    drawn["spec"]["layout"] |= {"hovermode": "x"} if many else {}
    return drawn


_BITS: Final = say("bits")
MEASURES: Final[dict[Unsureness, StepMeasure]] = {
    "entropy": StepMeasure(
        say("All tokens"), say("Entropy"), _BITS, say("Entropy of the next-token distribution at each step, in bits.")
    ),
    "ten": StepMeasure(
        say("{n} likeliest", n=N_BEST),
        say("Entropy, {n} likeliest", n=N_BEST),
        _BITS,
        say("Entropy among the {n} likeliest tokens at each step, in bits.", n=N_BEST),
    ),
    "rest": StepMeasure(
        say("1 − p"),
        say("1 − p of the likeliest token"),
        "",
        say("Total probability of all tokens except the likeliest, at each step."),
    ),
}


def _values(trace: Trace, name: Unsureness) -> np.ndarray:
    if name == "entropy":
        return trace.entropies()
    return entropy_of_best(trace.log_probs) if name == "ten" else other_share(trace.log_probs)


def _meaning(run: ViewedRun) -> list[str]:
    """What the numbers mean, and what label smoothing does to them where the card says that there was some."""
    name, smoothing = run.view.of(StepLook).unsure, run.checkpoint.card.label_smoothing()
    n_pieces = len(run.trace.vocabulary)
    if name == "entropy":
        said = say(
            "Entropy is −Σ p·log₂ p over all {n:,} tokens. 0 bits means certain; a coin toss between two tokens "
            "has 1 bit. Many tokens with tiny probabilities can also have 1 bit together.",
            n=n_pieces,
        )
        return [said, *([_smoothed(smoothing, n_pieces)] if smoothing else [])]
    if name == "ten":
        return [
            say(
                "Entropy of only the {n} likeliest tokens, with their probabilities scaled to sum to 1. 0 bits "
                "means certain; a coin toss between two tokens has 1 bit.",
                n=min(N_BEST, n_pieces),
            )
        ]
    said = say("1 − p is the total probability of all tokens except the likeliest; 0 means certain.")
    wanted = say(
        "This model was trained with label smoothing {share:g}, so in its training targets, 1 − p was never below "
        "{least:.2g}.",
        share=smoothing or 0,
        least=(smoothing or 0) * (1 - 1 / n_pieces),
    )
    return [said, *([wanted] if smoothing else [])]


def _smoothed(smoothing: float, n_pieces: int) -> str:
    return say("This model was trained with label smoothing {share:g}: even where only one token was right, it had "
               "to spread this share of the probability evenly over all tokens. This training target itself has an "
               "entropy of {bits:.1f} bits.", share=smoothing, bits=entropy_of_smoothed(smoothing,
               n_pieces))  # fmt: skip
