"""Speculative decoding in rounds: four kinds of draft, checks, timings; greedy outputs with weights of fewer bits.

A round has a draft and a check. The draft proposes the next pieces. The model reads all of them in one pass, which
gives its own choice at each place, given the pieces before it. Proposals are accepted up to the first that differs;
there the model's piece replaces it, and the next round begins. So the output is the model's greedy output, whatever the
draft. Drafts differ only in how many passes of the model they save.

    bits     the model itself, with the weights of its decoder rounded to a few bits
    layers   the first decoder layers, then the final norm and the output layer
    source   pieces of the source, or in a decoder-only model of the text so far: what follows where they match the
             output's end, or without a match what is at the same place
    jacobi   any pieces at all places; the check replaces each by the model's choice, which is the next proposal

A pass over several tokens sums in another order than steps of one. Where two pieces are nearly equal, a step decides,
as in `run`. Rounding a model's weights moves all logits a little, so its own output (`with_few_bits`) changes first
where the two best pieces were nearly equal.

Source: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding" (2023), algorithm 1, of which
greedy decoding is the simplest case; Elhoushi et al., "LayerSkip" (2024), section 4.3, for fewer layers; Saxena,
"Prompt Lookup Decoding" (2023), for the source; Santilli et al., "Accelerating Transformer Inference for Translation
via Parallel Decoding" (2023), algorithm 1, for Jacobi; Nagel et al., "A White Paper on Neural Network Quantization"
(2021), section 2.2, for fewer bits.

Shapes: n tokens, V target vocabulary.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.extensions.drafts.int8_draft import Int8
from glassformer.extensions.what_if.interventions import RoundWeights
from glassformer.extensions.what_if.interventions.layer_changes import WIDTHS
from glassformer.extensions.what_if.two_runs import aligned
from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import Progress
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.distribution import check_open
from transformer.runs.drafting import Ids, choices
from transformer.runs.inputs import rules_for
from transformer.runs.query import Greedy, Query, Runnable
from transformer.runs.reading import EncodedBatch, Pause, go_on, read
from transformer.runs.running import run_batch
from transformer.runs.trace import Trace

Kind = Literal["bits", "layers", "source", "jacobi"]
LONGEST_MATCH = 3  # pieces of the output's end that are looked for in the source
FURTHER = 8  # places that are guessed if none of the guessed ones ended the output


@dataclass(frozen=True)
class How:
    """A way to draft."""

    kind: Kind = "bits"
    amount: int = 8  # bits of a weight, or number of decoder layers; unused by the other kinds
    ahead: int = 0  # most pieces that are proposed at once; 0 for as many as an output of this source should have


@dataclass(frozen=True)
class DraftPosition:
    """A place of a proposal, as the check pass saw it."""

    proposed: int | None  # what the draft has there; None at the place behind its last piece
    chosen: int  # what the draft has there; None at the place after its last piece
    proposed_prob: float  # probability of each under the model; 0 for None
    chosen_prob: float


@dataclass(frozen=True)
class DraftRound:
    """A draft and its check."""

    start: int  # place of the first proposed piece in the output, from 0
    places: tuple[DraftPosition, ...]
    accepted: int  # how many proposed pieces the output has now
    added: int | None  # the model's own piece after them; None if the output was complete
    draft_passes: int  # steps of the draft, if it is a model
    steps: int  # of one token each, that decided between pieces nearly equal
    seconds: tuple[float, float] = field(default=(0.0, 0.0), compare=False)  # of draft and check

    @property
    def written(self) -> Ids:
        """What the output has because of it."""
        accepted = tuple(place.chosen for place in self.places[: self.accepted])
        return accepted if self.added is None else (*accepted, self.added)


@dataclass(frozen=True)
class Drafted:
    """An output that was drafted and checked."""

    ids: Ids  # the output: what the model writes greedily
    n_forced: int  # forced pieces at its beginning, which are not drafted
    rounds: tuple[DraftRound, ...]

    @property
    def passes(self) -> int:
        """Passes of the model."""
        return sum(1 + one.steps for one in self.rounds)

    @property
    def alone(self) -> int:
        """Passes that it would have taken one piece at a time."""
        return len(self.ids) - self.n_forced

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""
        return 200 * sum(1 + len(one.places) for one in self.rounds)


@torch.inference_mode()
def draft_and_check(checkpoint: Runnable, query: Query, how: How, *, pause: Pause = go_on) -> Drafted:
    """Write a query's output by drafts and checks; it is that of `run`.

    `pause` is called between two rounds. Changes of the model and rules of decoding apply to the check, and to drafts
    by the model. A QueryError if the query does not decode greedily, does not fit the checkpoint, has a change under
    which a pass over several pieces differs from steps, or has rules that exclude every piece.
    """
    task = _Task(checkpoint, query)
    return _drafted(task, _drafter(task, how), pause)


def layers_there(checkpoint: Runnable) -> range:
    """How many decoder layers a draft with fewer can have; empty if there is but one."""
    return range(1, checkpoint.config.n_decoder_layers)


class _Task:
    """What is to be written: a query whose source has been read."""

    def __init__(self, checkpoint: Runnable, query: Query) -> None:
        checkpoint.model.anatomy.stack("decoder")
        if not isinstance(query.decoding, Greedy):
            raise QueryError(
                "A draft is checked against greedy decoding, because sampling and beam search choose among several "
                "tokens at each place. Choose greedy decoding."
            )
        self.checkpoint, self.query, self.config = checkpoint, query, checkpoint.config
        self.reading = read(checkpoint, [query], maps=False)
        if not self.reading.tap.causal:
            raise QueryError(
                "A change of this run lets a token see later ones, so one pass over a draft would show it more than "
                "a step does. Remove that change."
            )
        self.source = self.reading.sources[0]
        self.prompt, self.rules = self.source.prompt_ids, rules_for(self.config, query, self.source)
        self.most = self.rules.most
        self.reader = _Reader(checkpoint.model, self.reading, self.reading.tap)
        self.usual = 2 * len(self.source.ids) + 10

    def begun(self) -> Ids:
        """The forced beginning."""
        found: Ids = ()
        for i in self.source.forced:
            found = found if self.over(found) else (*found, i)
        return found

    def over(self, ids: Ids) -> bool:
        """Whether an output is complete."""
        return len(ids) >= self.most or bool(ids and ids[-1] in self.config.end_ids)

    def scores(self, log_probs: Tensor, ids: Ids, log_sum: Tensor) -> Tensor:
        """What a choice after an output's beginning goes by [V]."""
        return self.rules.scores(log_probs, self.prompt + ids, float(log_sum))

    def prefix(self) -> Prefix:
        """What steps of one piece begin with."""
        reading, cache = self.reading, KVCache(self.config.n_decoder_layers)
        insisted, tap = self.source.insisted, reading.tap
        return Prefix(
            self.checkpoint.model, reading.src_ids, cache=cache, memory=reading.memory, tap=tap, insisted=insisted
        )

    def stepwise(self, ids: Ids) -> int:
        """The piece that a step of one token writes after an output's beginning."""
        steps = greedy(self.prefix(), max_new=self.most, forced=[ids])
        return next(islice(steps, len(ids), None)).ids[0]


class _Reader:
    """Reads texts with a model; what a text shares with the one before is not read again."""

    def __init__(self, model: Transformer, reading: EncodedBatch, tap: Tap) -> None:
        self._model, self._tap, self._memory = model, tap, reading.memory
        mask = None if reading.memory is None else model.source_mask(reading.src_ids)
        self._mask = None if mask is None or (tap is NO_TAP and bool(mask.all())) else mask
        self._cache, self._text = KVCache(len(model.decoder.layers)), tuple[int, ...]()

    def read(self, text: Ids, n: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities after each of the last n tokens [n, V], and logits minus these [n]."""
        past = 0
        while past < min(len(self._text), len(text) - n) and self._text[past] == text[past]:
            past += 1
        for one in self._cache.self_attn:
            one.length = past
        self._cache.length, self._text = past, text
        ids = torch.tensor([text[past:]])
        hidden = self._model.decode(ids, self._memory, self._mask, tap=self._tap, cache=self._cache)
        logits = self._model.project(hidden[:, -n:], tap=self._tap.at(len(text) - n))[0].cpu()
        return logits.log_softmax(dim=-1), logits.logsumexp(dim=-1)


# ------------------------------------------------------------------------------------------------ rounds

Propose = Callable[[Ids, DraftRound | None], tuple[Ids, int]]
"""From the output so far and the last round to a proposal, and the steps that it took."""


def _drafted(task: _Task, propose: Propose, pause: Pause) -> Drafted:
    begun = ids = task.begun()
    rounds: list[DraftRound] = []
    while not task.over(ids):
        began = perf_counter()
        proposed, steps = propose(ids, rounds[-1] if rounds else None)
        between = perf_counter()
        places, accepted, added, n_steps = _checked(task, ids, proposed)
        seconds = between - began, perf_counter() - between
        rounds.append(DraftRound(len(ids), places, accepted, added, steps, n_steps, seconds))
        ids += rounds[-1].written
        pause()
    return Drafted(ids, len(begun), tuple(rounds))


def _checked(task: _Task, ids: Ids, proposed: Ids) -> tuple[tuple[DraftPosition, ...], int, int | None, int]:
    """One pass over a proposal: its places, how many pieces are accepted, the one added after them, and steps."""
    whole = ids + proposed
    n = len(proposed) + (not proposed or not task.over(whole))  # behind the last piece of an output comes nothing
    text = task.prompt + (whole if n > len(proposed) else whole[:-1])
    log_probs, log_sums = task.reader.read(text, n)
    probs, growth = log_probs.exp(), max(task.config.repetition_penalty, 1 / task.config.repetition_penalty)
    places: list[DraftPosition] = []
    accepted, added, n_steps, settled = 0, None, 0, True
    for i in range(n):
        before = ids + proposed[:i]
        scores = task.scores(log_probs[i], before, log_sums[i])
        chosen, there = int(scores.argmax()), proposed[i] if i < len(proposed) else None
        if settled:
            check_open(scores[None])
            if choices(scores[None], (chosen,), Greedy(), growth=growth) == [None]:
                chosen, n_steps = task.stepwise(before), n_steps + 1
            accepted += there == chosen
            added = None if there == chosen else chosen
            settled = there == chosen and not task.over((*before, chosen))
        there_prob = 0.0 if there is None else float(probs[i, there])
        places.append(DraftPosition(there, chosen, there_prob, float(probs[i, chosen])))
    return tuple(places), accepted, added, n_steps


# ------------------------------------------------------------------------------------------------ drafts


def _drafter(task: _Task, how: How) -> Propose:
    if how.kind == "source":
        return _copying(task, how)
    if how.kind == "jacobi":
        return _guessing(task, how)
    model, reading = task.checkpoint.model, task.reading
    if how.kind == "layers":
        if how.amount not in layers_there(task.checkpoint):
            raise QueryError(
                "A draft with {n} decoder layers was requested, but this model has {whole}. Choose fewer, but at "
                "least 1.",
                n=how.amount,
                whole=task.config.n_decoder_layers,
            )
        return _by_model(task, how, _Reader(first_layers(model, how.amount), reading, reading.tap))
    changes = (*task.query.interventions, RoundWeights(bits=str(how.amount)))
    return _by_model(task, how, _Reader(model, reading, tap_for(changes, task.checkpoint)))


def first_layers(model: Transformer, n: int) -> Transformer:
    """The same model with only its first decoder layers; it shares their parameters."""
    found, decoder = copy(model), copy(model.decoder)
    for one in (found, decoder):
        one._modules = dict(one._modules)  # a copy shares them with what it is a copy of
    decoder.layers = nn.ModuleList(list(decoder.layers)[:n])
    found.decoder = decoder
    return found


def _by_model(task: _Task, how: How, reader: _Reader) -> Propose:
    """A model of its own writes on greedily."""

    def propose(ids: Ids, last: DraftRound | None) -> tuple[Ids, int]:
        found = ids
        while len(found) - len(ids) < (how.ahead or task.usual) and not task.over(found):
            log_probs, log_sums = reader.read(task.prompt + found, 1)
            found += (int(task.scores(log_probs[0], found, log_sums[0]).argmax()),)
        return found[len(ids) :], len(found) - len(ids)

    return propose


def _copying(task: _Task, how: How) -> Propose:
    """Pieces of the source that the target vocabulary has, and the end; of a decoder-only model the text so far."""
    checkpoint, never = task.checkpoint, {task.config.unk_id, *task.config.never_written}
    known = [checkpoint.tgt_tokenizer.id_of(piece) for piece in task.source.pieces]
    pieces = tuple(i for i in known if i is not None and i not in never)

    def propose(ids: Ids, last: DraftRound | None) -> tuple[Ids, int]:
        most = min(how.ahead or task.usual, task.most - len(ids))
        if task.reading.memory is not None:
            at = _after(pieces, ids)
            return pieces[len(ids) if at is None else at :][:most], 0
        text = task.prompt + ids
        at = _after(text[:-1], text)
        return () if at is None else text[at:][:most], 0

    return propose


def _after(text: Ids, ids: Ids) -> int | None:
    """The place in a text behind what it shares with the end of ids, the longest and last such; None without any."""
    for n in range(min(LONGEST_MATCH, len(ids)), 0, -1):
        for place in range(len(text) - n, -1, -1):
            if text[place : place + n] == ids[-n:]:
                return place + n
    return None


def _guessing(task: _Task, how: How) -> Propose:
    """At first the end piece everywhere; then what the model chose at each place of the last round."""
    (guess, *_) = (*task.config.end_ids, task.config.fill_id)

    def propose(ids: Ids, last: DraftRound | None) -> tuple[Ids, int]:
        chosen = () if last is None else tuple(place.chosen for place in last.places[len(last.written) :])
        width = how.ahead or max(len(task.source.ids) + FURTHER - len(ids), FURTHER)
        width = min(width, task.most - len(ids))
        return (chosen + (guess,) * width)[:width], 0

    return propose


# ------------------------------------------------------------------------------------------------ time


@dataclass(frozen=True)
class Times:
    """What it takes, in milliseconds: medians of several turns."""

    draft: float  # all drafts of an output
    check: float  # all checks
    alone: float  # the same output, one piece at a time
    turns: int
    quick: bool  # whether the draft was made by products of 8 bits (`extensions.drafts.int8_draft`)
    nbytes: int = 100


def timing(checkpoint: Runnable, query: Query, how: How, *, turns: int) -> Generator[Progress, None, Times]:
    """Measure a way to draft, in turns with one piece at a time; a first turn does not count. Errors as above."""
    task = _Task(checkpoint, query)
    with torch.inference_mode():
        quick = _quick(task, how)
        propose = quick or _drafter(task, how)
    found: list[tuple[float, float, float]] = []
    for turn in range(turns + 1):
        yield Progress(turn, turns + 1)
        found.append(_one_turn(task, propose))
    draft, check, alone = (1000 * median(each) for each in zip(*found[1:], strict=True))
    return Times(draft, check, alone, turns, quick is not None)


def _quick(task: _Task, how: How) -> Propose | None:
    """The draft of 8 bits as a run makes it, if that is what is asked for and can be made here."""
    if how.kind != "bits" or how.amount != 8 or task.reading.tap is not NO_TAP:
        return None
    with suppress(RuntimeError, AttributeError):  # torch has no such products on this machine
        draft = Int8(task.checkpoint.model)

        def propose(ids: Ids, last: DraftRound | None) -> tuple[Ids, int]:
            most = len(ids) + (how.ahead or task.usual)
            asked = replace(task.query, max_new=min(most, task.most))
            (found,) = draft.write(replace(task.reading, queries=[asked]), [0], [ids], go_on)
            return found[len(ids) :], len(found) - len(ids)

        return propose
    return None


@torch.inference_mode()
def _one_turn(task: _Task, propose: Propose) -> tuple[float, float, float]:
    """Seconds of drafts, of checks, and of one piece at a time."""
    rounds = _drafted(task, propose, go_on).rounds
    began = perf_counter()
    collect(greedy(task.prefix(), max_new=task.most, forced=[task.source.forced]))
    alone = perf_counter() - began
    return sum(one.seconds[0] for one in rounds), sum(one.seconds[1] for one in rounds), alone


@dataclass(frozen=True)
class Rounded:
    """What a model writes greedily."""

    bits: int | None  # of each weight; None for the weights as they are
    ids: tuple[int, ...]  # its output
    text: str  # the same as text
    probs: tuple[float, ...]  # of each of its pieces
    same: tuple[bool, ...]  # whether a piece is one of the output without rounding, if both are aligned
    changed: int  # the fewest pieces that are replaced, inserted or deleted from that output to this one
    margin: float | None  # the smallest difference between the two best pieces of a step, in nats; None without any
    margin_at: int  # the step of it, from 0


@torch.inference_mode()
def with_few_bits(
    checkpoint: Runnable, query: Query, *, bits: Sequence[int] = WIDTHS, pause: Pause = go_on
) -> tuple[Rounded, ...]:
    """The greedy output of a query's source, with its changes: without rounding, then with each number of bits.

    Errors as of `run`.
    """
    own: tuple[int, ...] | None = None
    found: list[Rounded] = []
    for n in (None, *bits):
        changes = query.interventions if n is None else (*query.interventions, RoundWeights(bits=str(n)))
        asked = replace(query, interventions=changes, decoding=Greedy(), hypothesis=0)
        (trace,) = run_batch(checkpoint, [asked], maps=False, pause=pause)
        own = trace.tgt_ids if own is None else own
        found.append(_rounded(trace, n, own))
        pause()
    return tuple(found)


def _rounded(trace: Trace, bits: int | None, own: Sequence[int]) -> Rounded:
    rows = aligned(own, trace.tgt_ids)
    same = {row.right for row in rows if row.same}
    margins = []  # infinite where the rules leave but one piece
    for step in range(trace.n_forced, trace.n_steps):
        second, first = np.partition(trace.scores_at(step), -2)[-2:]
        margins.append(float(first - second))
    least = int(np.argmin(margins)) if margins else 0
    return Rounded(
        bits,
        trace.tgt_ids,
        trace.output_text,
        tuple(float(np.exp(trace.log_probs[step, i])) for step, i in enumerate(trace.tgt_ids)),
        tuple(step in same for step in range(trace.n_steps)),
        sum(not row.same for row in rows),
        margins[least] if margins and np.isfinite(margins[least]) else None,
        least + trace.n_forced,
    )
