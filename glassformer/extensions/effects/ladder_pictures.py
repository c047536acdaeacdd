"""Part "From minimal to complete": loss and output with the model's parts all off, then switched on one by one.

Each is a change of *What if*. Nothing is trained again, and the order matters: what is off hides what is on already.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from glassformer.charts.grammar import finite, table
from glassformer.charts.marks import Axis, Numbers, bars
from glassformer.extensions.effects.attribution_pictures import MATTERS
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.what_if.interventions.layer_changes import NoNorm, NoResidual
from glassformer.extensions.what_if.interventions.miswiring import Miswiring
from glassformer.extensions.what_if.interventions.piece_changes import NoPositions
from glassformer.extensions.what_if.interventions.score_changes import ScoreScale
from glassformer.extensions.what_if.sweeps import apart, readings
from glassformer.extensions.what_if.two_runs import reference_ids
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.server.jobs import SMALL
from glassformer.server.model_runner import cost_of
from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.query import Greedy, Runnable
from transformer.runs.running import write
from transformer.runs.teacher_forcing import read_at_once
from transformer.runs.trace import Trace

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


# ------------------------------------------------------------------------------------------------ the picture


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
