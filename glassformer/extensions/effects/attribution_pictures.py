"""The page What matters: list of its parts, pictures of Tokens and Logit, agreement of attention with occlusion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeVar

import numpy as np

from glassformer.charts.attribution import (
    HOW_TO_READ,
    HOW_TO_READ_BARS,
    HOW_TO_READ_MAP,
    Bar,
    Column,
    contribution_bars_spec,
    contribution_map_spec,
    piece_credit_spec,
)
from glassformer.extensions.effects.attribution.gradients import Baseline, Integrated, input_times_gradient
from glassformer.extensions.effects.attribution.occlusion import OcclusionEffects
from glassformer.extensions.effects.attribution.parts import Contributions, contributions
from glassformer.extensions.effects.attribution.target import AttentionCredit, AttributionTarget, ask, weigh
from glassformer.extensions.effects.parts_of_logit import Grid, grid_of, part_names, rival_of, whose_logit
from glassformer.runs.picture import Page, PartEntry, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Click, cell_of, place_of
from transformer.i18n import joined, paragraph, say, say_n
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import Kind, anatomy
from transformer.runs.array_records import ArrayRecord

MATTERS = Page(
    "matters",
    say("What matters"),
    panel="matters_panel",
    entries=(
        PartEntry("pieces", say("Tokens"), "glassformer.extensions.effects.matters_panels:pieces"),
        PartEntry("logit", say("Logit"), "glassformer.extensions.effects.matters_panels:draw_logit"),
        PartEntry("paths", say("Why this token"), "glassformer.extensions.effects.matters_panels:paths"),
        PartEntry("depth", say("Gradients"), "glassformer.extensions.effects.matters_panels:draw_depths"),
        PartEntry(
            "ladder", say("From minimal to complete"), "glassformer.extensions.effects.matters_panels:draw_ladder"
        ),
    ),
)


NAMES: Final = {
    "attention": say("Attention"),
    "hidden": say("Lost if hidden"),
    "gradient": say("Input × gradient"),
    "integrated": say("Integrated"),
    "moved": say("‖α·v·W_O‖"),
    "rollout": say("Rollout"),
}
BASELINES: Final[dict[Baseline, str]] = {
    "zero": say("Integrated gradients: zero baseline"),
    "mean": say("Integrated gradients: mean baseline"),
}

MEANINGS: Final = {
    "attention": say(
        "Attention: the weights in this step's row of the attention map (Vaswani et al., 2017, section 3.2). They "
        "show where the row looks, but not what it takes from there or whether the output needs it."
    ),
    "hidden": say(
        "Lost if hidden: how much the probability of the written token drops when no other token may attend to the "
        "token in question (Zeiler and Fergus, 2014, section 4.2; Li et al., 2016). Of these measures, only this "
        "one is an experiment. But tokens that can replace each other show no effect when hidden one by one, and "
        "no model was trained on sentences with missing tokens."
    ),
    "gradient": say(
        "Input × gradient: what a token's embedding would add to ln p of the written token if the model were "
        "linear near this embedding (Denil et al., 2014). The estimate holds only for small changes and is near 0 "
        "wherever the model is sure."
    ),
    "integrated": say(
        "Integrated: the mean gradient along the straight line from a baseline to the embedding, times the "
        "embedding minus the baseline (Sundararajan et al., 2017, sections 3 and 5). The numbers add up to the "
        "difference in ln p between input and baseline. A different baseline gives different numbers."
    ),
    "moved": say(
        "‖α·v·W_O‖: the length of the vector that the heads take from the token (Kobayashi et al., 2020, section "
        "2). Even a long vector may point in a direction that no later part of the model reads."
    ),
    "rollout": say(
        "Rollout: attention weights traced back through all layers, with half of the weight kept by the residual "
        "stream in each layer (Abnar and Zuidema, 2020, section 3). Rollout ignores values and feed-forward networks."
    ),
}


def how_to_read(run: ViewedRun, weighed: AttentionCredit) -> str:
    """How to read the table, and what each column shows and cannot show, a line each."""
    lines = [HOW_TO_READ, *MEANINGS.values()]
    if weighed.kind == "decoder":
        lines.append(
            say("This model is decoder-only, so the tokens shown are everything that it had read by this step. The "
                "last token cannot be hidden, because this step's prediction is computed from its vector.")
        )  # fmt: skip
    if run.trace.query.interventions:
        lines.append(say("All measurements are made in the changed run, with the changes above active."))
    return joined("\n", lines)


def completeness(found: Integrated, baseline: Baseline) -> str:
    """How far integrated gradients add up, with the numbers."""
    total, whole = float(found.credit.sum()), found.value - found.baseline
    numbers = say(
        "Integrated gradients add up to {total:+.3f}. From the baseline to the input, ln p goes from {low:.3f} to "
        "{high:.3f}, a change of {whole:+.3f}. With {n} points along the way, the error is {error:.4f}.",
        total=total, low=found.baseline, high=found.value, whole=whole, error=abs(found.error), n=found.n_points,
    )  # fmt: skip
    if found.is_complete:
        return numbers
    advice = [say("With an error this large, the individual numbers cannot be trusted.")]
    advice += [say("The mean embedding may be a better baseline.")] * (baseline == "zero")
    return joined(" ", [numbers, *advice])


# ------------------------------------------------------------------------------------------------ do they agree?


DECIDES: Final = 0.005
"""A change of the probability below this counts as none: it would read as 0.00."""
MOST_LISTED: Final = 8

Outcome = Literal["nothing", "own", "none", "same", "differ"]


@dataclass(frozen=True, eq=False)
class StepView:
    """One step, as attention and hiding see it."""

    pieces: Sequence[str]  # A label for each piece
    weights: np.ndarray  # attention of the step's row, 0 to 1 [piece]
    plain: float  # probability of the piece that was written
    hidden: np.ndarray  # the same with each piece hidden [piece]; NaN where it cannot be

    @staticmethod
    def of(pieces: Sequence[str], weights: np.ndarray, hiding: OcclusionEffects, step: int) -> StepView:
        """One step of what was measured."""
        n = len(pieces)
        return StepView(pieces, weights[:n], float(np.exp(hiding.plain[step])), np.exp(hiding.hidden[step, :n]))

    @property
    def looked_at(self) -> int:
        """The piece with the largest weight, the first of equals."""
        return int(np.argmax(np.nan_to_num(self.weights, nan=-1.0)))

    @property
    def needed(self) -> int:
        """The piece whose hiding changes the probability most, the first of equals."""
        return int(np.argmax(np.nan_to_num(np.abs(self.hidden - self.plain), nan=-1.0)))

    @property
    def outcome(self) -> Outcome:
        """What can be said: nothing could be hidden; the piece looked at cannot be; none matters; or which do."""
        if not np.isfinite(self.hidden).any():
            return "nothing"
        if abs(self.hidden[self.needed] - self.plain) < DECIDES:
            return "none"
        if not np.isfinite(self.hidden[self.looked_at]):
            return "own"
        return "same" if self.needed == self.looked_at else "differ"

    def name(self, place: int) -> str:
        """A piece in a sentence; with its number where another reads the same."""
        piece = self.pieces[place]
        if list(self.pieces).count(piece) == 1:
            return say("“{piece}”", piece=piece)
        return say("“{piece}” ({number})", piece=piece, number=place + 1)


def in_words(step: StepView, target: str) -> str:
    """What a step's attention and hiding say of each other; `target` is the piece that was written."""
    looked, needed = step.looked_at, step.needed
    weight, other_weight = hundredths(float(step.weights[looked])), hundredths(float(step.weights[needed]))
    plain, after, after_needed = step.plain, float(step.hidden[looked]), float(step.hidden[needed])
    eye, hand = step.name(looked), step.name(needed)
    match step.outcome:
        case "nothing":
            return say("This step has not read any token that can be hidden.")
        case "none":
            return say(
                "No single token decides this step: hiding {hand} changes the probability of “{target}” most, but "
                "only from {plain:.3f} to {after:.3f}. The largest attention weight, {weight}, is on {eye}.",
                hand=hand, target=target, plain=plain, after=after_needed, weight=weight, eye=eye,
            )  # fmt: skip
        case "own":
            return say(
                "The largest attention weight, {weight}, is on {eye}. This token cannot be hidden, because "
                "this step read it last. Of the other tokens, hiding {hand} (weight {other}) changes the "
                "probability of “{target}” most, from {plain:.3f} to {after:.3f}.",
                weight=weight, eye=eye, hand=hand, other=other_weight, target=target, plain=plain, after=after_needed,
            )  # fmt: skip
        case "same":
            return say(
                "Attention and effect agree here: {eye} has the largest weight, {weight}, and hiding it changes "
                "the probability of “{target}” most, from {plain:.3f} to {after:.3f}.",
                eye=eye, weight=weight, target=target, plain=plain, after=after,
            )  # fmt: skip
        case "differ":
            return say(
                "Attention and effect disagree here: {eye} has the largest weight, {weight}, and hiding it "
                "changes the probability of “{target}” from {plain:.3f} to {after:.3f}. But hiding {hand} (weight "
                "{other}) changes this probability most, to {most:.3f}.",
                eye=eye, weight=weight, target=target, plain=plain, after=after, hand=hand, other=other_weight,
                most=after_needed,
            )  # fmt: skip


@paragraph
def in_all_steps(steps: Sequence[StepView]) -> Iterator[str]:
    """The same of all steps that may be seen, counted."""
    outcomes = [step.outcome for step in steps]
    n_same, n_none, n_own = (outcomes.count(one) for one in ("same", "none", "own"))
    differ = [place + 1 for place, one in enumerate(outcomes) if one == "differ"]
    yield say_n(
        "In this sentence, attention and hiding point to the same token at {same} of {n} step.",
        "In this sentence, attention and hiding point to the same token at {same} of {n} steps.",
        len(steps),
        same=n_same,
    )
    if differ:
        more = "…" if len(differ) > MOST_LISTED else ""
        listed = joined(
            ", ", [*map(str, differ[: MOST_LISTED - 1]), *[f"{n}{more}" for n in differ[MOST_LISTED - 1 : MOST_LISTED]]]
        )
        yield say_n(
            "Attention and hiding point to different tokens at step {listed}.",
            "Attention and hiding point to different tokens at steps {listed}.",
            len(differ),
            listed=listed,
        )
    if n_own:
        yield say("Steps that look most at the token read last, which cannot be hidden: {n}.", n=n_own)
    if n_none:
        yield say_n(
            "At {n} step, hiding any single token changes the probability by less than {least}.",
            "At {n} steps, hiding any single token changes the probability by less than {least}.",
            n_none,
            least=DECIDES,
        )


def pieces_of(run: ViewedRun) -> list[str]:
    """The pieces that get credit: those of the source, or all that a decoder which is alone had read by this step."""
    trace = run.trace
    if "encoder" in trace.kinds:
        return list(trace.src_tokens[: trace.n_tokens("encoder")])
    return list(trace.read_tokens[: trace.row_of(run.view.step) + 1])


def key_of(run: ViewedRun, name: str, *more: Hashable) -> Hashable:
    """Says all that decides something that is measured of a run."""
    trace = run.trace
    return ("credit", name, trace.query, trace.src_ids, trace.read_ids, *more)


_Found = TypeVar("_Found", bound=np.ndarray | ArrayRecord)


def measured_of(run: ViewedRun, name: str, work: Callable[[AttributionTarget], _Found], *more: Hashable) -> _Found:
    """What some work makes of the step, once for all who look at it."""
    checkpoint, trace, step = run.checkpoint, run.trace, run.view.step
    key = key_of(run, name, step, *more)
    return run.work.compute(key, lambda: work(ask(checkpoint, trace, step)), nbytes=lambda found: found.nbytes)


def has_step(run: ViewedRun) -> bool:
    """Whether there is a step whose piece may be seen."""
    return anatomy(run.checkpoint.config).writes and not run.visible.covered


# ------------------------------------------------------------------------------------------------ pieces


@dataclass(frozen=True)
class Owed(RunScene):
    """What a step owes to each piece, by several measures; None for what is not measured yet."""

    weighed: AttentionCredit
    hiding: OcclusionEffects | None = None
    gradient: np.ndarray | None = None
    integrated: Integrated | None = None


def weighed_of(run: ViewedRun) -> AttentionCredit:
    """What the step's row takes from each piece."""
    return measured_of(run, "weighed", weigh)


def gradient_of(run: ViewedRun) -> np.ndarray:
    """Input x gradient of each piece."""
    return measured_of(run, "gradient", input_times_gradient)


def owed(run: ViewedRun) -> Owed | None:
    """What is measured at once; None where there is no step whose piece may be seen. Errors as of `ModelAccess`."""
    return Owed(run, weighed_of(run), gradient=gradient_of(run)) if has_step(run) else None


PIECES = MATTERS.part("pieces", owed, asks=True)


@PIECES.picture("matters_pieces", say("Tokens"), follows="server")
def pieces(scene: Owed) -> Plot:
    """The pieces, a column for each measure."""
    run = scene.run
    names, step, columns = pieces_of(run), run.view.step + 1, _columns(scene)
    target = run.trace.tgt_tokens[run.view.step]
    title = say("Step {step}: contribution of each token to {piece}", step=step, piece=target)
    spec = piece_credit_spec(names, columns, title=title, piece_axis=say("Token"))
    alt = say(
        "For each of {n} tokens, {m} measures of its contribution to step {step}. The table has the same numbers.",
        n=len(names),
        m=len(columns),
        step=step,
    )
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read(run, scene.weighed))


def _columns(scene: Owed) -> list[Column]:
    """The columns of the table; one without numbers says why."""
    run, weighed, hiding = scene.run, scene.weighed, scene.hiding
    gradient, integrated = scene.gradient, scene.integrated
    n, step, view = len(pieces_of(run)), run.view.step, run.visible.view
    none = np.full(n, np.nan)
    not_yet = say("not measured yet; start the measurement below the table")
    lost = none if hiding is None else -hiding.probability_change(step)[:n]
    own_row = say("this token cannot be hidden, because this step's prediction is computed from its vector")
    rolls, no_rollout = run.checkpoint.config.residual, say("a change in this run leaves some rows without weights")
    if not rolls:
        no_rollout = say("this model has no residual stream, which rollout requires")
    told: dict[str, tuple[np.ndarray, str, str, float]] = {
        "attention": (weighed.attention(view.layer, view.head), ".2f", "", 0.0),
        "hidden": (lost, "+.2f", not_yet if hiding is None else own_row, 0.02),
        "gradient": (none if gradient is None else gradient, "+.3f", not_yet, 0.01),
        "integrated": (none if integrated is None else integrated.credit, "+.2f", not_yet, 0.05),
        "moved": (weighed.moved(view.layer, view.head), ".2f", "", 0.0),
        "rollout": (weighed.rollout if rolls else none, ".2f", no_rollout, 0.0),
    }
    return [Column(NAMES[name], *numbers, meaning=MEANINGS[name]) for name, numbers in told.items()]


# ------------------------------------------------------------------------------------------------ logit


MOST_BARS: Final = 12


@dataclass(frozen=True)
class Logit(RunScene):
    """The parts of a logit, or of a difference of two."""

    found: Contributions

    @cached_property
    def values(self) -> np.ndarray:
        """What each part adds [part]."""
        values = self.found.values
        return np.asarray(values[0] if rival_of(self.run) is None else values[0] - values[1])

    @cached_property
    def grid(self) -> Grid:
        """Where each part stands."""
        return grid_of(self.run.checkpoint.config, self.found.parts, self.values)


def open_logit(run: ViewedRun) -> Logit | None:
    """The parts of the logit of the piece that was written, less those of its rival; errors and None as of `owed`."""
    if not has_step(run):
        return None
    rival = rival_of(run)
    others = () if rival is None else (rival,)
    written = run.trace.tgt_ids[run.view.step]
    return Logit(run, measured_of(run, "contributions", lambda one: contributions(one, others), written, others))


LOGIT = MATTERS.part("logit", open_logit, asks=True)


@LOGIT.picture("matters_parts", say("Logit"), follows="server")
def parts(scene: Logit) -> Plot:
    """The parts by layer and component; a click looks at a head."""
    run, grid = scene.run, scene.grid
    spec = contribution_map_spec(
        grid.values,
        rows=grid.rows,
        columns=grid.columns,
        names=grid.names,
        title=whose_logit(run),
        chosen=grid.cell_of(run.view.kind, run.view.layer, run.view.head),
    )
    alt = say(
        "What each of {n} parts of the decoder adds to the logit, by layer and component. The table has the "
        "same numbers.",
        n=int(np.isfinite(grid.values).sum()),
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_MAP, clicked=partial(_head_at, cell_of, grid.heads))


def _head_at(
    read: Callable[[Click], Any], heads: Mapping[Any, tuple[Kind, int, int]], click: Click
) -> Mapping[str, Any] | None:
    head = heads.get(read(click))
    return None if head is None else dict(zip(("kind", "layer", "head"), head, strict=True))


@LOGIT.picture("matters_bars", say("The largest parts"), follows="server")
def bars(scene: Logit) -> Plot:
    """The largest of them; a click looks at a head."""
    found, values, view = scene.found, scene.values, scene.run.view
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    heads = {place: head for place, part in enumerate(found.parts) if (head := part.as_head) is not None}
    bars = [
        Bar(
            *part_names(found.parts[place]),
            float(values[place]),
            place if place in heads else None,
            chosen=heads.get(place) == (view.kind, view.layer, view.head),
        )
        for place in order
    ]
    every, bars, rest = bars, bars[:MOST_BARS], order[MOST_BARS:]
    if rest:
        others = say_n("{n} other", "{n} others", len(rest))
        bars.append(Bar(others, others, float(values[rest].sum())))
    figure = contribution_bars_spec(bars, title=say("The largest parts"), every=every)
    alt = say("The {n} parts that raise or lower the logit most, starting with {part}.",
              n=min(MOST_BARS, len(order)), part=bars[0].name)  # fmt: skip
    return Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ_BARS, clicked=partial(_head_at, place_of, heads))
