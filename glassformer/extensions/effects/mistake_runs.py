"""Coding mistakes made in a run: those a model can have, outputs and losses of both sides, changes of the output.

A card of the page *What goes wrong* is any wiring that is a change of a run. What comes of it is computed, as most
mistakes change only some outputs. The right output, which both sides also read at once, as in a training, is the
reference where one is known, else what the model writes without the mistake.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Final

import numpy as np
import torch

from glassformer.extensions.what_if.interventions.piece_changes import Pads
from glassformer.extensions.what_if.two_runs import first_difference, reference_ids
from glassformer.extensions.wirings.catalogue import Changes, Variant, texts, variants
from glassformer.extensions.wirings.readings import RIGHT
from glassformer.runs import loading
from glassformer.server.jobs import Job
from glassformer.server.model_runner import MAP_BYTES
from transformer.checkpoint.load import Checkpoint
from transformer.errors import NotFiniteError, QueryError
from transformer.i18n import Sentence, say, say_n
from transformer.i18n.sentence import Template
from transformer.model.anatomy import anatomy
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.runs.decoding import Prefix, greedy
from transformer.runs.drafting import check
from transformer.runs.query import Beam, Greedy, Query
from transformer.runs.reading import map_bytes, read
from transformer.runs.teacher_forcing import TeacherForcedPass, read_at_once
from transformer.runs.trace import Trace

ENDED: Final = "end of sentence"
MOST_STEPS: Final = 64  # of an output that is written again without a cache to see whether a mistake changes it
PADS: Final = Pads(4)  # after the source, on both sides: without any, no mistake with padding shows
TRAINED_SO: Final = {"no-causal-mask": "reverse-leak"}  # a shipped model that was trained with a mistake on purpose
OLD: Final = {
    "leak": "no-causal-mask", "inverted": "causal-inverted", "axis": "padding-on-rows", "scale": "scores-not-scaled",
    "twice": "softmax-twice", "positions": "no-positions", "shifted": "positions-late", "heads": "heads-number",
    "norms": "norm-place", "nan": "no-guard", "residual": "no-residual", "embedding": "embedding-scale",
}  # fmt: skip
"""What old addresses call a mistake."""


@lru_cache(maxsize=16)
def shown(config: ModelConfig) -> Mapping[str, tuple[Variant, ...]]:
    """The mistakes that can be made in a run of a model, in the order of the catalogue, each in all its ways."""
    ways = {
        name: tuple(v for v in variants(name, config) if v.changes and not v.answers and v.reading == RIGHT)
        for name in texts()
    }
    return {name: some for name, some in ways.items() if some and anatomy(config).writes}


@dataclass(frozen=True, eq=False)
class MistakeResult:
    """What came of a run without a mistake, and with it."""

    right: Trace  # the run without it
    wrong: Trace | None  # with it; None if it could not be done
    asked: Query  # for the run with it
    said: Sentence  # what became of the output
    ids: tuple[int, ...]  # the right output
    is_reference: bool  # whether that is known from elsewhere
    reads: tuple[TeacherForcedPass | None, ...]  # of it without the mistake and with it; None where that is impossible

    @property
    def first(self) -> int | None:
        """The first token in which the outputs differ, from 0; None if they do not, or there is one output."""
        return None if self.wrong is None else first_difference(self.right.tgt_ids, self.wrong.tgt_ids)


def queries(config: ModelConfig, one: Variant, query: Query) -> tuple[Query, Query]:
    """What is asked without a mistake and with it; changes of the reader's own stay, but for those of the same."""
    pads = (PADS,) if "padding" in one.names[0] and PADS.unfit(config) is None else ()
    targets = {change.target for change in (*one.changes, *pads)}
    own = (*(change for change in query.interventions if change.target not in targets), *pads)
    return replace(query, interventions=own), replace(query, interventions=(*own, *one.changes))


def look(checkpoint: Checkpoint, one: Variant, query: Query, reference: str | None = None) -> MistakeResult:
    """Run a sentence without a mistake and with it; a QueryError if the first cannot be done, or a BusyError."""
    asked = queries(checkpoint.config, one, query)
    right, wrong = loading.run(checkpoint, asked[0]), None
    try:
        wrong = loading.run(checkpoint, asked[1])
        said = became(right, wrong)
    except NotFiniteError as error:
        site = error.sentence.values.get("site", "") if isinstance(error.sentence, Template) else ""
        said = say(
            "The model writes nothing: NaN (not a number) or infinite values first appear at “{site}”, and "
            "everything computed from them is lost, too.",
            site=site,
        )
    except QueryError as error:
        said = say("The model with the mistake cannot be run: {problem}", problem=error.sentence)
    ids = reference_ids(checkpoint, asked[0], reference)
    reads = tuple(_read(checkpoint, one, right, ids or right.tgt_ids) for one in asked)
    return MistakeResult(right, wrong, asked[1], said, ids or right.tgt_ids, bool(ids), reads)


def became(right: Trace, wrong: Trace) -> Sentence:
    """What became of an output, compared with the right one."""
    if (first := first_difference(right.tgt_ids, wrong.tgt_ids)) is None:
        return say("This mistake does not change the output: both sides write the same tokens.")
    if right.output_text.strip() and not wrong.output_text.strip() and wrong.stop_reason == ENDED:
        return say("The model writes nothing: the first token it chooses is the end mark.")
    if right.stop_reason == ENDED != wrong.stop_reason:
        return say_n(
            "The output does not end: it was stopped after {n} token.",
            "The output does not end: it was stopped after {n} tokens.",
            wrong.n_steps,
        )
    return say("From token {n} on, the output is different.", n=first + 1)


def _read(checkpoint: Checkpoint, query: Query, right: Trace, ids: tuple[int, ...]) -> TeacherForcedPass | None:
    """What one side makes of the right output, with all maps if they are not too large; None if it cannot read it."""
    config, asked = checkpoint.config, replace(query, decoding=Greedy(), forced=(), hypothesis=0)
    fits = 2 * map_bytes(config, len(right.src_ids), right.first_row + len(ids)) <= MAP_BYTES
    sites = tuple(one.site("*", name) for one in anatomy(config).attentions for name in ("weights", "mask") if fits)
    work = partial(read_at_once, checkpoint, asked, ids, sites, finite=False)
    with suppress(QueryError):
        return loading.compute(("at_once", asked, ids, sites), work, nbytes=lambda found: found.nbytes)
    return None


# ------------------------------------------------------------------------------------------------ which change it


def changes(checkpoint: Checkpoint, one: Variant, query: Query) -> bool:
    """Whether a mistake changes the output: True where there is none any more, False if there is none without it.

    True, too, where that would take too long: a mistake that mixes tokens, and a long output.
    """
    right, asked = queries(checkpoint.config, one, query)
    try:
        ids = loading.run(checkpoint, right).tgt_ids
    except QueryError:
        return False
    if not isinstance(asked.decoding, Beam):  # a beam of which less may be written is another search
        asked = replace(asked, max_new=min(asked.max_new, max(len(ids), 1)))
    work = partial(_writes_another, checkpoint, asked, ids)
    with suppress(QueryError):
        return loading.compute(("changes", asked, ids), work, nbytes=lambda _: 100)
    return True


@torch.inference_mode()
def _writes_another(checkpoint: Checkpoint, query: Query, ids: tuple[int, ...]) -> bool:
    """Whether a query writes something else than these ids.

    One pass over them says so if a token's values depend on no later one; else they are written until they differ.
    """
    reading = read(checkpoint, [query], maps=False)
    (source,), tap = reading.sources, reading.tap
    if tap.causal and not isinstance(query.decoding, Beam):
        (verdict,) = check(reading, [0], [ids])
        if verdict.sure:
            return verdict.kept != ids
    if not tap.causal and len(ids) > MOST_STEPS:
        return True
    if not isinstance(query.decoding, Greedy):
        return reading.decode()[0].ids != ids
    cache, insisted = KVCache(checkpoint.config.n_decoder_layers), source.insisted
    src_ids, memory = reading.src_ids, reading.memory
    prefix = Prefix(checkpoint.model, src_ids, cache=cache, memory=memory, tap=tap, insisted=insisted)
    steps = greedy(prefix, max_new=query.max_new, forced=[source.forced])
    return any(step.ids[0] != own for step, own in zip(steps, ids, strict=False))


def all_changes(checkpoint: Checkpoint, query: Query, job: Job) -> np.ndarray:
    """Whether each mistake may change the output, bool, in the order of `shown`: a job, which tells what it knows."""
    ways = shown(checkpoint.config).values()
    may = np.ones(len(ways), bool)
    for place, (first, *_) in enumerate(ways):
        job.pause()
        may[place] = changes(checkpoint, first, query)
        job.tell(may.copy())
    return may


def opening(checkpoint: Checkpoint, query: Query) -> Variant | None:
    """The mistake that the reader has made by a change, else the first that changes the output, or can be made."""
    there = [ways[0] for ways in shown(checkpoint.config).values()]
    changed = (one for one in there if changes(checkpoint, one, query))
    return of_changes(checkpoint.config, query.interventions) or next(chain(changed, there), None)


def of_changes(config: ModelConfig, made: Changes) -> Variant | None:
    """The mistake that is made by changes of a run, else the most alike of the same kind; None without any."""

    def parts(some: Changes) -> list[set[object]]:
        return [set(some), {(type(one), getattr(one, "how", "")) for one in some}, set(map(type, some))]

    def alike(one: Variant) -> tuple[int, ...]:
        shares = (len(own & there) for own, there in zip(parts(one.changes), parts(made), strict=True))
        return set(one.changes) <= set(made), *shares

    best = max((one for ways in shown(config).values() for one in ways), key=alike, default=None)
    return best if best is not None and any(alike(best)) else None
