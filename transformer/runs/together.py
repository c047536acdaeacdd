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
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch.nn.utils.rnn import pad_sequence

from transformer.model.cache import KVCache
from transformer.runs.decoding import Prefix
from transformer.runs.drafting import drafts
from transformer.runs.drafting.checking import settled, verify_and_trace
from transformer.runs.drafting.drafts import Ids
from transformer.runs.query import Greedy, Query, Sampling
from transformer.runs.reading import Pause, Reading, go_on, padded, read
from transformer.runs.rows import Row, write_rows
from transformer.runs.runnable import Runnable
from transformer.runs.trace import Trace

_Result = TypeVar("_Result")
MOST_ROWS = 32


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


def finish_alone(reading: Reading, ids: Ids | None, pause: Pause = go_on) -> Trace:
    """The trace of a reading of one query, as decoding it alone gives it; errors as in `run`.

    `ids` is what it wrote in a batch, if it was decoded there: kept if decoding alone surely writes the same.
    """
    (trace,) = verify_and_trace(reading, drafts.draft_for(reading), pause, proposed=None if ids is None else [ids])
    return trace


def decode_together(
    checkpoint: Runnable, readings: Sequence[Reading], pause: Pause = go_on, *, checked: bool = False
) -> dict[int, Ids]:
    """What readings of one query each write, by the reading's `id`; those that must be decoded alone are left out.

    It is a draft, which `finish_alone` checks; if `checked`, it is what the model writes in this batch.
    """
    if not checkpoint.model.anatomy.writes:
        return {}
    groups: dict[tuple[int, int], list[Reading]] = defaultdict(list)
    may_pad = checkpoint.config.pad_id is not None
    for reading in readings:
        if may_join(reading.queries[0]):
            source = reading.sources[0]  # prompts have one length, and sources that cannot be padded
            groups[len(source.prompt_ids), 0 if may_pad else len(source.ids)].append(reading)
    written: dict[int, Ids] = {}
    for group in groups.values():
        if len(group) > 1:
            with suppress(Exception):  # numbers that are not finite, no memory: each finds out alone
                written |= zip(map(id, group), _write(_joined(checkpoint, group), pause, checked), strict=True)
    return written


def _joined(checkpoint: Runnable, group: Sequence[Reading]) -> Reading:
    """Readings of one query each as one of all."""
    memories = [reading.memory[0] for reading in group if reading.memory is not None]
    return replace(
        group[0],
        queries=[reading.queries[0] for reading in group],
        sources=[reading.sources[0] for reading in group],
        src_ids=padded([reading.sources[0].ids for reading in group], checkpoint.config.fill_id),  # [B, S]
        memory=pad_sequence(memories, batch_first=True) if memories else None,  # [B, S, D]
        seen={},
    )


def _write(reading: Reading, pause: Pause, checked: bool) -> list[Ids]:
    config, draft = reading.checkpoint.config, drafts.draft_for(reading)
    if draft is not None:
        found = settled(reading, draft, pause) if checked else None
        if found is not None or not checked:
            return found or draft.write(reading, range(len(reading.queries)), [()] * len(reading.queries), pause)
    rows = [Row(config, *one) for one in zip(reading.queries, reading.sources, strict=True)]
    prefix = Prefix(
        reading.checkpoint.model,
        reading.src_ids,
        cache=KVCache(config.n_decoder_layers),
        memory=reading.memory,
    )
    return write_rows(prefix, config, rows, pause)
