"""Run queries that wait at the same moment: decode them together, then record each alone.

A decoding step reads all matrices of the decoder, for one row as for thirty, so a class that asks at the same moment
is decoded as a batch. A trace is made by the recording pass, which each query runs alone; only the chosen pieces come
from the batch. Where rounding could have changed a choice, the query is decoded alone (see
`transformer.runs.certain`). So each trace equals that of `run` to the last bit.

Beam search compares sums over many pieces, so how near two pieces are at one step says little; beams, and queries
with interventions, run alone.

Shapes: B queries, S source tokens, D d_model, V target vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.runs.certain import certain
from transformer.runs.decoding import Prefix, race, sampling_distribution
from transformer.runs.query import Greedy, Query, Sampling
from transformer.runs.record import Output
from transformer.runs.rules import Rules, check_open, scores_of
from transformer.runs.runnable import Runnable
from transformer.runs.running import Pause, Reading, go_on, padded, read
from transformer.runs.trace import Trace

_Result = TypeVar("_Result")
MOST_ROWS = 32
_LEAVING = 0.75  # copying the cache without rows that have ended pays when so few go on


def may_join(query: Query) -> bool:
    """Whether a query can be decoded together with others."""
    return isinstance(query.decoding, Greedy | Sampling) and not query.interventions


@torch.inference_mode()
def run_together(
    checkpoint: Runnable, queries: Sequence[Query], *, most_map_bytes: int | None = None, pause: Pause = go_on
) -> Iterator[Trace | Exception]:
    """Run queries, about `MOST_ROWS` at most, and decode together those that can be.

    Yields for each query, in order and as soon as possible, the trace that `run` returns or the error that it raises:
    an error affects no other query. A run whose maps need more memory than `most_map_bytes` keeps none;
    `transformer.runs.by_layer.each_layer` computes them again. `pause` is called between two rounds of decoding.
    """
    readings = [_attempt(partial(read, checkpoint, [query], most_map_bytes=most_map_bytes)) for query in queries]
    written = decode_together(checkpoint, [one for one in readings if isinstance(one, Reading)], pause)
    for one in readings:
        found = written.get(id(one))
        yield _attempt(partial(finish_alone, one, found, pause)) if isinstance(one, Reading) else one


def _attempt(work: Callable[[], _Result]) -> _Result | Exception:
    try:
        return work()
    except Exception as error:
        return error


def finish_alone(reading: Reading, ids: tuple[int, ...] | None, pause: Pause = go_on) -> Trace:
    """The trace of a reading of one query, as decoding it alone gives it; errors as in `run`.

    `ids` is what it wrote in a batch, if it was decoded there: kept if decoding alone surely writes the same.
    """
    if ids is not None:
        with suppress(QueryError):  # decoded alone, it may be found at another site
            (trace,) = reading.finish([Output(ids)])
            if surely(trace, torch.tensor(trace.scores())):
                return trace
    return reading.finish(reading.decode(pause))[0]


def surely(trace: Trace, scores: Tensor) -> bool:
    """Whether decoding alone surely writes the output of a trace that was recorded alone, by its scores [T, V]."""
    penalty = trace.rules.config.repetition_penalty
    growth = max(penalty, 1 / penalty)
    return certain(scores, trace.tgt_ids, trace.query.decoding, n_forced=trace.n_forced, growth=growth)


def decode_together(
    checkpoint: Runnable, readings: Sequence[Reading], pause: Pause = go_on
) -> dict[int, tuple[int, ...]]:
    """What readings of one query each write, by the reading's `id`; those that must be decoded alone are left out.

    It may differ from what each would write alone: `finish_alone` checks that.
    """
    if not checkpoint.model.anatomy.writes:
        return {}
    groups: dict[tuple[int, int], list[Reading]] = defaultdict(list)
    may_pad = checkpoint.config.pad_id is not None
    for reading in readings:
        if may_join(reading.queries[0]):
            source = reading.sources[0]  # prompts have one length, and sources that cannot be padded
            groups[len(source.prompt_ids), 0 if may_pad else len(source.ids)].append(reading)
    written: dict[int, tuple[int, ...]] = {}
    for group in groups.values():
        if len(group) > 1:
            with suppress(Exception):  # numbers that are not finite, no memory: each finds out alone
                outputs = _decode(_prefix(checkpoint, group), [_Row(reading) for reading in group], pause)
                written |= {id(reading): ids for reading, ids in zip(group, outputs, strict=True)}
    return written


def _prefix(checkpoint: Runnable, group: Sequence[Reading]) -> Prefix:
    memories = [reading.memory[0] for reading in group if reading.memory is not None]
    return Prefix(
        checkpoint.model,
        padded([reading.sources[0].ids for reading in group], checkpoint.config.fill_id),  # [B, S]
        cache=KVCache(checkpoint.config.n_decoder_layers),
        memory=pad_sequence(memories, batch_first=True) if memories else None,  # [B, S, D]
    )


class _Row:
    """One query while it is decoded."""

    def __init__(self, reading: Reading) -> None:
        query, source = reading.queries[0], reading.sources[0]
        self.ids: list[int] = []
        self._forced, self._how = source.forced, query.decoding
        self._most = min(query.max_new, source.room)
        self.rules = Rules(reading.checkpoint.config, len(source.prompt_ids), self._most)
        seed = query.decoding.seed if isinstance(query.decoding, Sampling) else 0
        self._generator = torch.Generator().manual_seed(seed)

    def extend(self, scores: Tensor, best: int) -> int:
        """Choose a piece, given what a choice goes by [V] and the best piece."""
        how = self._how
        if isinstance(how, Sampling):
            probs = sampling_distribution(scores, temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)
            best = int(race(probs, self._generator).argmax())  # drawn at a forced step as well
        self.ids.append(self._forced[len(self.ids)] if len(self.ids) < len(self._forced) else best)
        return self.ids[-1]

    def ended(self, end_ids: Sequence[int]) -> bool:
        return self.ids[-1] in end_ids or len(self.ids) == self._most


def _decode(prefix: Prefix, rows: Sequence[_Row], pause: Pause) -> list[tuple[int, ...]]:
    config, here = prefix.model.config, list(rows)  # here: those that still have a row in the batch
    over = [False] * len(here)
    while True:
        log_probs = prefix.next_log_probs().cpu()  # [rows here, V]
        scores = scores_of(log_probs, prefix.ids, prefix.log_sums, [row.rules for row in here])
        if config.has_rules:
            check_open(scores)  # each then finds out alone
        best = scores.argmax(dim=-1).tolist()
        ids = [
            config.eos_id if done else row.extend(scores[place], best[place])
            for place, (row, done) in enumerate(zip(here, over, strict=True))
        ]
        over = [done or row.ended(config.end_ids) for row, done in zip(here, over, strict=True)]
        if all(over):
            return [tuple(row.ids) for row in rows]
        prefix.append(torch.tensor(ids))
        staying = [place for place, done in enumerate(over) if not done]
        if len(staying) <= _LEAVING * len(here):
            prefix.select(torch.tensor(staying))
            here, over = [here[place] for place in staying], [False] * len(staying)
        pause()
