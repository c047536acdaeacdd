"""Dynamic batching: runs waiting requests of similar length together.

A pass reads all matrices, for one row as for eight, so a class that asks at the same moment is run in batches. A
batch sums in another order than a sentence alone, so numbers differ from those of `run` by rounding (about 6e-6).
What is written does not differ: where rounding could have changed a choice, the query is run alone (see
`transformer.runs.drafting`).

Beam search compares sums over many pieces, so how near two pieces are at one step says little; beams, and queries
with interventions, run alone.

Shapes: B queries, S source tokens, D d_model.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch
from torch.nn.utils.rnn import pad_sequence

from transformer.errors import QueryError
from transformer.runs.drafting import Ids, draft_for, guess, judged, settled, verdict_of, verify_and_trace
from transformer.runs.inputs import Source, read_source
from transformer.runs.query import Query, Runnable
from transformer.runs.reading import DecodedOutput, EncodedBatch, Pause, go_on, map_bytes, padded, read
from transformer.runs.trace import Trace

_Result = TypeVar("_Result")
READ_ROWS = 8  # in one batch: with more, an ordinary processor computes no faster
APART = 6  # most pieces by which the sources of a batch differ


@torch.inference_mode()
def run_together(
    checkpoint: Runnable, queries: Sequence[Query], *, most_map_bytes: int | None = None, pause: Pause = go_on
) -> Iterator[Trace | Exception]:
    """Run queries, and those of about the same length together.

    Yields for each query, in order, what `run` returns, but for rounding, or the error that it raises: an error
    affects no other query. A run whose maps need more memory than `most_map_bytes` keeps none;
    `transformer.runs.running.each_layer` computes them again. `pause` is called between two rounds of decoding.
    """
    found: dict[int, Trace | Exception] = {}
    groups = {place: group for group in _groups(checkpoint, queries) if len(group) > 1 for place in group}
    for place in range(len(queries)):
        if place in groups:
            group = groups[place]
            for one in group:  # it is run once, whatever comes of it
                del groups[one]
            with suppress(Exception):  # no memory, numbers that are not finite: each finds out alone
                found |= _run_group(checkpoint, group, queries, most_map_bytes, pause)
        if place not in found:
            found[place] = _attempt(partial(_alone, checkpoint, queries[place], most_map_bytes, pause))
        yield found.pop(place)


def run_apart(
    checkpoint: Runnable, queries: Sequence[Query], *, most_map_bytes: int | None = None, pause: Pause = go_on
) -> Iterator[Trace | Exception]:
    """The same, but only decoded together and recorded each alone: to the last bit what `run` gives."""
    readings = [_attempt(partial(read, checkpoint, [query], most_map_bytes=most_map_bytes)) for query in queries]
    written = decode_together(checkpoint, [one for one in readings if isinstance(one, EncodedBatch)], pause)
    for one in readings:
        ids = written.get(id(one))
        yield _attempt(partial(finish_alone, one, pause, ids)) if isinstance(one, EncodedBatch) else one


def _groups(checkpoint: Runnable, queries: Sequence[Query]) -> Iterator[dict[int, Source]]:
    """The sources, by place, of queries that run together; their lengths are similar, so little is padding."""
    sources: dict[int, Source] = {}
    for place, query in enumerate(queries):
        if query.may_join and checkpoint.model.anatomy.writes:
            with suppress(Exception):  # it finds out alone
                sources[place] = read_source(checkpoint, query)
    alike = not checkpoint.model.anatomy.reads or checkpoint.config.pad_id is None  # then lengths have to be equal
    group: dict[int, Source] = {}
    shortest = 0
    for place, source in sorted(sources.items(), key=lambda one: len(one[1].ids)):
        if group and (len(group) == READ_ROWS or len(source.ids) - shortest > (0 if alike else APART)):
            yield group
            group = {}
        shortest = shortest if group else len(source.ids)
        group[place] = source
    yield group


def _run_group(
    checkpoint: Runnable,
    group: Mapping[int, Source],
    queries: Sequence[Query],
    most_map_bytes: int | None,
    pause: Pause,
) -> dict[int, Trace]:
    """The traces of queries that run together, by their places; without those that need steps of their own."""
    asked, sources = [queries[place] for place in group], list(group.values())
    reading = read(checkpoint, asked, most_map_bytes=most_map_bytes, sources=sources)
    draft, rows = draft_for(reading), range(len(group))
    drafted = None if draft is None else guess(reading, draft, rows, [()] * len(rows), pause)
    ids = drafted or [output.ids for output in reading.decode(pause)]
    large = most_map_bytes is not None and most_map_bytes < map_bytes(
        checkpoint.config, reading.src_ids.size(1), len(reading.sources[0].prompt_ids) + max(map(len, ids))
    )
    if large and most_map_bytes:  # whether a run keeps its maps depends on no neighbour
        return {}
    traces = reading.finish([DecodedOutput(one) for one in ids], cut=True)
    verdicts = [verdict_of(trace) for trace in traces]
    if drafted is not None:
        judged(reading, drafted, verdicts)
    return {
        place: trace
        for place, trace, verdict in zip(group, traces, verdicts, strict=True)
        if verdict.whole and verdict.kept == trace.tgt_ids
    }


def _alone(checkpoint: Runnable, query: Query, most_map_bytes: int | None, pause: Pause) -> Trace:
    return finish_alone(read(checkpoint, [query], most_map_bytes=most_map_bytes), pause)


def _attempt(work: Callable[[], _Result]) -> _Result | Exception:
    try:
        return work()
    except Exception as error:
        return error


def finish_alone(reading: EncodedBatch, pause: Pause = go_on, ids: Ids | None = None) -> Trace:
    """The trace of a reading of one query, as decoding it alone gives it; errors as in `run`.

    `ids` is what it wrote in a batch, if it was decoded there: kept if decoding alone surely writes the same.
    """
    if ids is not None:
        with suppress(QueryError):  # decoded alone, it may be found at another site
            (trace,) = reading.finish([DecodedOutput(ids)])
            verdict = verdict_of(trace)
            if verdict.whole and verdict.kept == ids:
                return trace
    return verify_and_trace(reading, draft_for(reading), pause)[0]


def decode_together(
    checkpoint: Runnable, readings: Sequence[EncodedBatch], pause: Pause = go_on, *, checked: bool = False
) -> dict[int, Ids]:
    """What readings of one query each write, by the reading's `id`; those that must be decoded alone are left out.

    It is a draft, for the caller to check; if `checked`, it is what the model writes in this batch.
    """
    if not checkpoint.model.anatomy.writes:
        return {}
    groups: dict[tuple[int, int], list[EncodedBatch]] = defaultdict(list)
    may_pad = checkpoint.config.pad_id is not None
    for reading in readings:
        if reading.queries[0].may_join:
            source = reading.sources[0]  # prompts have one length, and sources that cannot be padded
            groups[len(source.prompt_ids), 0 if may_pad else len(source.ids)].append(reading)
    written: dict[int, Ids] = {}
    for group in groups.values():
        if len(group) > 1:
            with suppress(Exception):  # numbers that are not finite, no memory: each finds out alone
                reading = _joined(checkpoint, group)
                draft = draft_for(reading) if checked else None
                found = None if draft is None else settled(reading, draft, pause)
                found = found or [output.ids for output in reading.decode(pause)]
                written |= zip(map(id, group), found, strict=True)
    return written


def _joined(checkpoint: Runnable, group: Sequence[EncodedBatch]) -> EncodedBatch:
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
