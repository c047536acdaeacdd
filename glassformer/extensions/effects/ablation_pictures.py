"""Pictures of gradients by depth (without residuals or norms), and of the loss as parts are switched on in turn.

Gradients are of ln p by layer, with and without residual connections and norms. The ladder is the loss and the output
with the model's parts all off, then switched on one by one; the order matters: what is off hides what is on already.

Each is a change of *What if*. Only the run is changed, not the training: a model trained without residual connections
would have other weights.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import finite, stroke, table
from glassformer.charts.marks import Axis, Numbers, Scale, Series, bars, lines
from glassformer.extensions.effects.attribution.gradients import by_depth
from glassformer.extensions.effects.attribution.target import AttributionTarget
from glassformer.extensions.effects.attribution_pictures import MATTERS, has_step, measured_of
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.what_if.interventions.layer_changes import NoNorm, NoResidual, SwapNorms
from glassformer.extensions.what_if.interventions.miswiring import Miswiring
from glassformer.extensions.what_if.interventions.piece_changes import NoPositions
from glassformer.extensions.what_if.interventions.score_changes import ScoreScale
from glassformer.extensions.what_if.sweeps import apart, readings
from glassformer.extensions.what_if.two_runs import reference_ids
from glassformer.runs.map_axes import STACK_NAMES
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.server.jobs import SMALL
from glassformer.server.model_runner import cost_of
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.model.taps import both
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import Intervention
from transformer.runs.query import Greedy, Runnable
from transformer.runs.running import write
from transformer.runs.teacher_forcing import read_at_once
from transformer.runs.trace import Trace

CHANGES: Final[dict[str, tuple[type[NoResidual | NoNorm | SwapNorms], ...]]] = {
    say("unchanged"): (),
    say("without residual connections"): (NoResidual,),
    say("without norms"): (NoNorm,),
    say("without both"): (NoResidual, NoNorm),
    say("pre-norm and post-norm swapped"): (SwapNorms,),
}


COLOURS: Final = (theme.MARK_COLOR, theme.TARGET_COLOR, theme.SOURCE_COLOR, theme.NEUTRAL_COLOR, theme.GUIDE_COLOR)


@dataclass(frozen=True)
class Depths(RunScene):
    """Gradients by depth."""

    places: dict[str, str]  # the site of each layer's input, by what it is called
    norms: np.ndarray  # of each change at each place; NaN where a model cannot be changed so [change, place]


def depths(run: ViewedRun) -> Depths | None:
    """The gradients of the step's log-probability; None where there is no step whose token may be seen."""
    if not has_step(run):
        return None
    checkpoint, parts = run.checkpoint, anatomy(run.checkpoint.config)
    places: dict[str, str] = {
        say("{stack} {layer}", stack=STACK_NAMES[one.name], layer=layer + 1): f"{one.name}.{layer - 1}.output"
        if layer
        else f"{one.name}.embedding.output"
        for one in parts.stacks
        for layer in range(one.n_layers)
    }

    def work(asked: AttributionTarget) -> np.ndarray:
        found = np.full((len(CHANGES), len(places)), np.nan)
        for row, changes in enumerate(CHANGES.values()):
            if not any(change.unfit(checkpoint.config) for change in changes):
                changed = both(asked.tap, tap_for([change() for change in changes], checkpoint))
                found[row] = by_depth(replace(asked, tap=changed), list(places.values()))
        return found

    return Depths(run, places, measured_of(run, "depths", work))


DEPTHS = MATTERS.part("depth", depths, asks=True)


@DEPTHS.picture("matters_depths", say("Gradients by depth"), follows="server")
def gradients(o: Depths) -> Plot:
    """A line for each change."""
    token, post = o.run.trace.tgt_tokens[o.run.view.step], o.run.checkpoint.config.norm == "post"
    series = [
        Series(name, np.where(norms > 0, norms, np.nan), stroke(colour, 2, size=7))
        for name, norms, colour in zip(CHANGES, o.norms, COLOURS, strict=True)
        if np.isfinite(norms).any()
    ]
    title = say("Gradient of ln p({token}) by layer", token=token)
    up = Scale(say("Gradient norm, nats"), {"type": "log", "exponentformat": "power"})
    drawn = lines(title, Axis(say("Input of layer"), list(o.places)), up, series, height=460, top=140)
    read = say(
        "Each point is ‖∂ ln p / ∂x‖, where x is all tokens' vectors at a layer's input. In backpropagation, "
        "the gradient of the loss flows from right to left. The trained weights stay the same."
    )
    own = (
        say("This model is post-norm: a norm on every path back rescales the gradient.")
        if post
        else say("This model is pre-norm: the residual connections are a path back without norms.")
    )
    return Plot(spec=drawn["spec"], alt=drawn["alt"], how_to_read=joined(" ", [read, own]), fit=True)


# ------------------------------------------------------------------------------------------------ the ladder

Climb = list[tuple[float, str]]
PARTS: Final[tuple[tuple[Sentence, Intervention], ...]] = (
    (say("Heads"), Miswiring(how="onemap")),
    (say("Norms"), NoNorm()),
    (say("Residuals"), NoResidual()),
    (say("Scale"), ScoreScale()),
    (say("Positions"), NoPositions()),
    (say("Depth"), Miswiring(how="lastlayer")),
    (say("Masks"), Miswiring(how="discarded")),
)
"""In the order in which they are switched on, each with the change that takes it away."""


def parts_of(config: ModelConfig) -> list[tuple[Sentence, Intervention]]:
    """Those that a model has."""
    found = []
    for part in PARTS:
        with suppress(QueryError):
            part[1].check(config)
            found.append(part)
    return found


def climb(checkpoint: Runnable, trace: Trace, ids: tuple[int, ...], pause: Callable[[], None] = lambda: None) -> Climb:
    """The loss and the output with no part, then with one part more each; the run's own changes stay.

    The loss is that of the right output's ids; of an encoder-only model, how far its vectors are from the whole one's.
    """
    parts, writes = [change for _, change in parts_of(checkpoint.config)], anatomy(checkpoint.config).writes
    own = [one for one in trace.query.interventions if one.target not in {part.target for part in parts}]
    query, found = replace(trace.query, decoding=Greedy(), forced=(), hypothesis=0, max_new=max(len(ids), 1)), []
    for n in range(len(parts) + 1):
        pause()
        number, output, asked = np.nan, "", replace(query, interventions=(*own, *parts[n:]))
        with suppress(QueryError):  # values that are not finite
            if writes:
                number = read_at_once(checkpoint, asked, ids, finite=False).mean_loss
                output = checkpoint.tgt_tokenizer.decode(write(checkpoint, [asked])[0])
            else:
                number = apart(*(readings(checkpoint, trace, one)[1] for one in (trace.query, asked)))
        found.append((number, output))
    return found


@dataclass(frozen=True)
class Climbed(RunScene):
    """The ladder of the model at hand."""

    steps: Climb


def climbed(run: ViewedRun) -> Climbed | None:
    """The ladder, of a large model only if it is asked for; None while the user guesses. Errors: `ModelAccess`."""
    checkpoint, trace, query = run.checkpoint, run.trace, run.trace.query
    if run.view.guess or not (checkpoint.config.count_parameters() <= SMALL or run.view.of(EffectsLook).climb):
        return None
    reference = run.link.reference or checkpoint.card.reference_of(query.source)
    ids = reference_ids(checkpoint, query, reference) or trace.tgt_ids
    work, cost = partial(climb, checkpoint, trace, ids), len(PARTS) * cost_of(query)
    return Climbed(run, run.work.long(("ladder", query, ids), work, cost=cost, nbytes=lambda made: 1_000 * len(made)))


LADDER = MATTERS.part("ladder", climbed)
HOW_TO_READ: Final = say(
    "The first bar is the model with none of these parts; each bar below it has one part more, the last is the whole "
    "model. Without heads, all have the mean of their maps; without depth, only the last layer counts. The loss is of "
    "the correct output if it is known, else of the model's own, read in one pass as in training; outputs are cut at "
    "its length. Nothing is trained again: bars show how much the trained weights rely on a part."
)


@LADDER.picture("matters_ladder", say("From minimal to complete"), follows="still")
def ladder(o: Climbed) -> Plot | None:
    """The loss with each part more, and what is written."""
    writes, (numbers, outputs) = anatomy(o.run.checkpoint.config).writes, zip(*o.steps, strict=True)
    unit = say("loss (nats per token)") if writes else say("distance of vectors from the complete model’s")
    names = [say("None of them"), *(say("+ {part}", part=said) for said, _ in parts_of(o.run.checkpoint.config))]
    ends = [f"{number:.2f}" if np.isfinite(number) else "NaN" for number in numbers]
    heights = Numbers(unit, np.nan_to_num(numbers, posinf=0.0))
    drawn = bars(LADDER.title, Axis(say("Switched on"), names, counted=False), heights, ends=ends.__getitem__)
    columns = (say("Switched on"), unit, say("Output"))
    table(drawn["spec"]["layout"], columns, zip(names, map(finite, numbers), outputs, strict=True))
    said = CaptionTable(columns=columns, rows=list(zip(names, ends, outputs, strict=True)))
    return Plot(**drawn, how_to_read=HOW_TO_READ, said=Captions(table=said) if writes else None)
