"""Speculative decoding: interface `Drafter` of extensions, one-pass check of drafts, traces as of plain decoding.

Row t of a pass over a whole output is what the step with t + 1 tokens sees (`transformer.runs.recording_pass`), so one
pass gives the model's choice after every beginning of the draft. The draft is correct up to the first piece where the
model would have chosen another: that piece is replaced, what follows is drafted again, and so on. The result is what
decoding step by step writes, whatever the draft was.

A pass over many tokens, or over a batch, sums in another order than a step alone, so log-probabilities differ in their
last digits. That changes a choice only where two pieces were nearly equal: then the output is decoded step by step. If
each choice is the best piece by more than rounding can move, decoding alone writes the same output. For sampling, the
seed fixes the numbers that are drawn: a piece with probability p arrives after an exponential time of rate p, and the
first to arrive is drawn (see `distribution.race`). So these scores must pass the same test, and the last piece that
top-k and top-p keep must be far enough from the first that they leave out.

Source: Stern et al., "Blockwise Parallel Decoding" (2018), section 4; Leviathan et al., "Fast Inference from
Transformers via Speculative Decoding" (2023), for a smaller model's drafts.

Shapes: B rows, T tokens, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.extensions import provided
from transformer.runs import recording_pass
from transformer.runs.distribution import Rules, race, sampling_distribution
from transformer.runs.inputs import rules_for
from transformer.runs.query import Decoding, Query, Sampling
from transformer.runs.reading import DecodedOutput, EncodedBatch, padded
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

Ids = tuple[int, ...]
Pause = Callable[[], None]


class Draft(Protocol):
    """Writes guesses of outputs for one model."""

    @property
    def name(self) -> str:
        """Its name in settings and in the log."""

    def suits(self, reading: EncodedBatch) -> bool:
        """Whether it can write for a reading: its way of decoding, its changes."""

    def write(self, reading: EncodedBatch, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """A guess of the output of some rows of a reading's batch, of which `suits` is true.

        It begins with what each row's output has `begun` with, and has at least a piece more, the end piece included
        where it ended, and at most as many as may be written. `pause` is called between two rounds of decoding.
        """


class Drafter(Protocol):
    """Chooses drafts and is told how good they were: what an extension has for `drafts`, an object or a module."""

    def draft_for(self, reading: EncodedBatch) -> Draft | None:
        """The draft for a reading; None if it has none."""

    def judge(self, model: Transformer, *, written: int, right: int) -> None:
        """Told after a check how many pieces of a model's drafts it was about, and how many of them were right."""

    def failed(self, model: Transformer, draft: Draft, error: Exception) -> None:
        """Told that a draft could not be written."""

    def steps(self, model: Transformer, memory: Tensor | None, n: int, *, int8: bool) -> Callable[[], int] | None:
        """What writes `n` pieces as drafts are written, to be timed, and returns `n`; None if it cannot."""


def drafters() -> tuple[Drafter, ...]:
    """Those of all extensions."""
    return provided("drafts")


def draft_for(reading: EncodedBatch) -> Draft | None:
    """The draft for a reading; None if the model shall write step by step."""
    return next((draft for one in drafters() if (draft := one.draft_for(reading)) is not None), None)


CLOSE = 1e-4
"""How near, in nats, two pieces may come; rounding moves a log-probability by about 6e-6."""

_ORDINARY = 32.0  # nats from the best piece to the worst; rounding grows with the logits


def choices(
    log_probs: Tensor, ids: Sequence[int], how: Decoding, *, n_forced: int = 0, growth: float = 1.0
) -> list[int | None]:
    """What decoding alone, greedily or by sampling, surely chooses after each beginning of these ids.

    `log_probs` are the scores of the choices [T, V], from a pass that read these ids; the first of them may be
    forced. `growth` is the factor by which rules of decoding multiply rounding. None: two pieces come so near that
    rounding could decide.
    """
    lowest = log_probs.nan_to_num(nan=torch.nan, neginf=0.0).min()
    limit = CLOSE * growth * max(1.0, float(-lowest) / _ORDINARY)  # NaN never passes below
    found = _drawn(log_probs, len(ids), how, limit) if isinstance(how, Sampling) else _best(log_probs, limit)
    return [*ids[:n_forced], *found[n_forced:]]


def _best(scores: Tensor, limit: float) -> list[int | None]:
    """The best piece of each row [T, V]; None where another comes nearer than the limit."""
    best = torch.from_numpy(scores.numpy().argmax(axis=-1))[:, None]  # [T, 1]; torch takes ten times as long
    ahead = scores.gather(1, best)[:, 0] - scores.scatter(1, best, -torch.inf).amax(dim=-1)  # [T]
    return [i if lead >= limit else None for i, lead in zip(best[:, 0].tolist(), ahead.tolist(), strict=True)]


def _drawn(log_probs: Tensor, n_steps: int, how: Sampling, limit: float) -> list[int | None]:
    probs = sampling_distribution(log_probs, how)
    limit = limit * max(1.0, 1 / how.temperature)  # the temperature divides differences, too
    generator = torch.Generator().manual_seed(how.seed)
    races = torch.stack([race(row, generator) for row in probs[:n_steps]])  # drawn at a forced step as well
    return [
        i if i is not None and _border_is_clear(log_probs[step], probs[step], how, limit) else None
        for step, i in enumerate(_best(races.log(), limit))
    ]


def _border_is_clear(log_probs: Tensor, probs: Tensor, how: Sampling, limit: float) -> bool:
    """Whether rounding cannot move a piece [V] over the border of top-k or top-p."""
    kept = probs > 0
    if not (how.top_k or how.top_p < 1.0) or bool(kept.all()):
        return True
    if not float(log_probs[kept].min() - log_probs[~kept].max()) >= limit:
        return False
    if how.top_p == 1.0:
        return True
    shares = (log_probs / how.temperature).softmax(dim=-1)
    whole = shares.topk(how.top_k).values.sum() if 0 < how.top_k < len(shares) else shares.sum()
    together = shares[kept].sum() / whole
    last = shares[kept].min() / whole  # the pieces before it were not enough to reach p; with it they are
    return abs(float(together) - how.top_p) >= limit and abs(float(together - last) - how.top_p) >= limit


ROUNDS = 6  # drafts of one output; then it is decoded step by step


@dataclass(frozen=True)
class Verdict:
    """What a check says of a draft."""

    kept: Ids  # what decoding step by step surely writes: the draft up to its first wrong piece, and the right one
    whole: bool  # whether this is all of the output
    sure: bool = True  # False: after `kept` two pieces are nearly equal, and only decoding step by step can tell


NOTHING = Verdict((), whole=False)


def verify_and_trace(reading: EncodedBatch, draft: Draft | None, pause: Pause) -> tuple[Trace, ...]:
    """The traces of a reading, as decoding step by step gives them, with a draft sooner; errors as of `run`."""
    rows = range(len(reading.queries))
    with suppress(QueryError):  # step by step, the error may name another site
        proposed = None if draft is None else guess(reading, draft, rows, [()] * len(rows), pause)
        if draft is not None and proposed is not None:
            traces = reading.finish([DecodedOutput(ids) for ids in proposed])
            verdicts = [verdict_of(trace) for trace in traces]
            judged(reading, proposed, verdicts)
            if all(one.whole and one.kept == ids for one, ids in zip(verdicts, proposed, strict=True)):
                return traces
            del traces  # their maps would stay in memory during the next pass
            found = settled(reading, draft, pause, verdicts)
            if found is not None:
                return reading.finish([DecodedOutput(ids) for ids in found])
    return reading.finish(reading.decode(pause))


def settled(
    reading: EncodedBatch, draft: Draft, pause: Pause, verdicts: Sequence[Verdict] | None = None
) -> list[Ids] | None:
    """What decoding step by step writes in each row, given verdicts on earlier drafts; None: drafts cannot tell."""
    now = list(verdicts or [NOTHING] * len(reading.queries))
    left = [row for row, verdict in enumerate(now) if not verdict.whole]
    with suppress(QueryError):
        for _ in range(ROUNDS):
            if not left:
                break
            if not all(now[row].sure for row in left):
                return None
            ids = guess(reading, draft, left, [now[row].kept for row in left], pause)
            if ids is None:
                return None
            found = check(reading, left, ids)
            if verdicts is None:
                judged(reading, ids, found)
                verdicts = found
            for row, verdict in zip(left, found, strict=True):
                now[row] = verdict
            left = [row for row in left if not now[row].whole]
    return None if left else [verdict.kept for verdict in now]


def guess(
    reading: EncodedBatch, draft: Draft, rows: Sequence[int], begun: Sequence[Ids], pause: Pause
) -> list[Ids] | None:
    """What a draft writes; None if it fails, for whatever reason: a run then goes on without."""
    try:
        return draft.write(reading, rows, begun, pause)
    except QueryError:  # as the model's own steps may find out
        return None
    except Exception as error:
        for drafter in drafters():
            drafter.failed(reading.checkpoint.model, draft, error)
        return None


def judged(reading: EncodedBatch, ids: Sequence[Ids], verdicts: Sequence[Verdict]) -> None:
    """Remember how good the first drafts of some outputs were."""
    right = sum(
        len(own) if one.kept == own else max(len(one.kept) - 1, 0) for own, one in zip(ids, verdicts, strict=True)
    )
    for drafter in drafters():
        drafter.judge(reading.checkpoint.model, written=sum(map(len, ids)), right=right)


def check(reading: EncodedBatch, rows: Sequence[int], ids: Sequence[Ids]) -> list[Verdict]:
    """One pass over the drafts of some rows, without a record. A QueryError if a number is not finite."""
    model, config = reading.checkpoint.model, reading.checkpoint.config
    prompts = [reading.sources[row].prompt_ids for row in rows]
    read_ids = padded([(*prompt, *own[:-1]) for prompt, own in zip(prompts, ids, strict=True)], config.fill_id)
    memory = None if reading.memory is None else reading.memory[list(rows)]
    mask = model.source_mask(reading.src_ids[list(rows)])
    logits = recording_pass.read_target(model, read_ids, memory, mask, ["logits"], tap=reading.tap)["logits"]
    found = []
    for place, (row, own) in enumerate(zip(rows, ids, strict=True)):
        query, source = reading.queries[row], reading.sources[row]
        first = len(source.prompt_ids) - 1
        steps = logits[place, first : first + len(own)]  # [T, V]
        rules = rules_for(config, query, source)
        scores = rules.all_scores(steps.log_softmax(dim=-1), source.prompt_ids + own, steps.logsumexp(dim=-1))
        found.append(verdict(rules, query, scores, own, n_forced=len(source.forced)))
    return found


def verdict_of(trace: Trace) -> Verdict:
    """What a trace says of the draft that it recorded."""
    return verdict(trace.rules, trace.query, trace.all_scores(), trace.tgt_ids, n_forced=trace.n_forced)


def verdict(rules: Rules, query: Query, scores: Tensor, ids: Ids, *, n_forced: int) -> Verdict:
    """What the scores [T, V] of a pass over a draft say of it."""
    penalty, ends = rules.config.repetition_penalty, rules.config.end_ids
    own = choices(scores, ids, query.decoding, n_forced=n_forced, growth=max(penalty, 1 / penalty))
    for step, (proposed, chosen) in enumerate(zip(ids, own, strict=True)):
        if chosen is None:
            return Verdict(ids[:step], whole=False, sure=False)
        if chosen != proposed or chosen in ends or step == rules.most - 1:
            return Verdict((*ids[:step], chosen), whole=chosen in ends or step == rules.most - 1)
    return Verdict(ids, whole=False)
