"""The part "From minimal to complete": the model's parts all off, then switched on one after the other, with the loss.

Each is a change of *What if*; nothing is trained again, so a number says how much the trained weights count on a part,
and not what a model could learn without it. The order matters: what is missing later hides what comes first.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from glassformer.charts.grammar import finite, table_of
from glassformer.charts.marks import Axis, Numbers, bars
from glassformer.extensions.effects.attribution_pictures import MATTERS
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.mistake_runs import reference_ids
from glassformer.extensions.what_if.interventions.compression_changes import OneMap
from glassformer.extensions.what_if.interventions.layer_changes import NoNorm, NoResidual
from glassformer.extensions.what_if.interventions.miswiring import Miswiring
from glassformer.extensions.what_if.interventions.piece_changes import NoPositions
from glassformer.extensions.what_if.interventions.score_changes import ScoreScale
from glassformer.extensions.what_if.sweeps import apart, readings
from glassformer.runs.measurement_jobs import begins_by_itself
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.server.model_runner import cost_of
from transformer.analysis.teacher_forced_pass import read_at_once
from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.array_records import ArrayRecord
from transformer.runs.interventions import Intervention
from transformer.runs.query import Greedy, Query, Runnable
from transformer.runs.running import write
from transformer.runs.trace import Trace

PARTS: Final[tuple[tuple[Sentence, Intervention], ...]] = (
    (say("Heads with maps of their own"), OneMap()),
    (say("Norms"), NoNorm()),
    (say("Residual connections"), NoResidual()),
    (say("Score scale"), ScoreScale()),
    (say("Positions"), NoPositions()),
    (say("All layers, not only the last"), Miswiring(how="lastlayer")),
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


@dataclass(frozen=True, eq=False)
class Ladder(ArrayRecord):
    """What came of each step: with no part, and then with one part more."""

    numbers: np.ndarray  # the loss; of an encoder alone, how far its vectors are from the complete model's [n]
    outputs: tuple[str, ...]  # what is written then; "" for nothing


def climb(checkpoint: Runnable, trace: Trace, ids: tuple[int, ...], pause: Callable[[], None] = lambda: None) -> Ladder:
    """Take the steps, with the right output's ids or an encoder's own tokens; the run's changes stay."""
    parts, found = [change for _, change in parts_of(checkpoint.config)], list[tuple[float, str]]()
    gone = {change.target for change in parts}
    own = tuple(one for one in trace.query.interventions if one.target not in gone)
    query = replace(trace.query, decoding=Greedy(), forced=(), hypothesis=0, max_new=max(len(ids), 1))
    for n in range(len(parts) + 1):
        pause()
        found.append(_step(checkpoint, trace, replace(query, interventions=(*own, *parts[n:])), ids))
    numbers, outputs = zip(*found, strict=True)
    return Ladder(np.array(numbers), outputs)


def _step(checkpoint: Runnable, trace: Trace, query: Query, ids: tuple[int, ...]) -> tuple[float, str]:
    number, output = np.nan, ""
    with suppress(QueryError):  # values that are not finite
        if not anatomy(checkpoint.config).writes:
            return apart(*(readings(checkpoint, trace, one)[1] for one in (trace.query, query))), ""
        number = read_at_once(checkpoint, query, ids, finite=False).mean_loss
        output = checkpoint.tgt_tokenizer.decode(write(checkpoint, [query])[0])
    return number, output


# ------------------------------------------------------------------------------------------------ the picture


@dataclass(frozen=True)
class Climbed(RunScene):
    """The ladder of the model at hand."""

    ladder: Ladder


def climbed(run: ViewedRun) -> Climbed | None:
    """The ladder, of a large model only if it is asked for; None while the user guesses. Errors: `ModelAccess`."""
    checkpoint, trace, query = run.checkpoint, run.trace, run.trace.query
    if run.view.guess or not (begins_by_itself(checkpoint) or run.view.of(EffectsLook).climb):
        return None
    ids = reference_ids(checkpoint, query, run.link.reference) or trace.tgt_ids
    found = run.work.long(
        ("ladder", query, ids),
        lambda pause: climb(checkpoint, trace, ids, pause),
        cost=len(PARTS) * cost_of(query),
        nbytes=lambda made: made.nbytes,
    )
    return Climbed(run, found)


LADDER = MATTERS.part("ladder", climbed)
HOW_TO_READ: Final = say(
    "The first bar is the model with none of these parts; each bar below it has one part more, and the last is the "
    "model as it stands. The loss is that of the correct output if it is known, else of the model's own, read in one "
    "pass as in training. Outputs are cut at its length. Nothing is trained again: a bar shows how much the trained "
    "weights rely on the parts, not what a model could learn without them."
)


@LADDER.picture("matters_ladder", say("From minimal to complete"), follows="still")
def ladder(o: Climbed) -> Plot | None:
    """The loss with each part more, and what is written."""
    writes, found = anatomy(o.run.checkpoint.config).writes, o.ladder
    unit = say("loss (nats per token)") if writes else say("distance of vectors from the complete model’s")
    names = [say("None of them"), *(say("+ {part}", part=said) for said, _ in parts_of(o.run.checkpoint.config))]
    ends = [f"{number:.2f}" if np.isfinite(number) else "NaN" for number in found.numbers]
    drawn = bars(
        say("From minimal to complete"),
        Axis(say("Switched on"), names, counted=False),
        Numbers(unit, np.nan_to_num(found.numbers, posinf=0.0)),
        ends=ends.__getitem__,
    )
    rows = list(zip(names, ends, found.outputs, strict=True))
    columns = (say("Switched on"), unit, say("Output"))
    table_of(drawn["spec"]["layout"], *zip(columns, (names, map(finite, found.numbers), found.outputs), strict=True))
    said = Captions(table=CaptionTable(columns=columns, rows=rows)) if writes else None
    return Plot(**drawn, how_to_read=HOW_TO_READ, said=said)
