"""Runs of queries, alone or batched, and replays of a finished run: values at hook points, maps layer by layer.

A run decodes, then reads the whole output once more with a recording tap.

A trace keeps weights and masks. Queries, keys, values, scores and the rest would take many times the memory, so a
replay computes them again when they are needed: one more pass, for the sites you name or the maps the run did not keep.
Every attention is computed as in the run's own recording pass, whichever layers are requested: a layer's maps are the
same to the last bit as in a run that keeps them all. The pass ends after the last requested layer.

**Dynamic batching.** A pass reads all matrices, for one row as for eight, so a class that asks at the same moment is
run in batches. A batch sums in another order than a sentence alone, so numbers differ from those of `run` by rounding
(about 6e-6). What is written does not differ: where rounding could have changed a choice, the query is run alone (see
`transformer.runs.drafting`). Beam search compares sums over many pieces, so how near two pieces are at one step says
little; beams, and queries with interventions, run alone.

Shapes: B queries, S source tokens, T target tokens, D d_model, V target vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer.errors import QueryError
from transformer.model.anatomy import Kind, anatomy
from transformer.model.taps import NO_TAP, Observer, Tap
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_of_run
from transformer.runs.drafting import Ids, draft_for, guess, judged, settled, verdict_of, verify_and_trace
from transformer.runs.inputs import Source, read_source
from transformer.runs.query import Query, Runnable
from transformer.runs.reading import WEIGHTS, DecodedOutput, EncodedBatch, Pause, go_on, map_bytes, padded, read
from transformer.runs.trace import Trace

_Result = TypeVar("_Result")


def run(checkpoint: Runnable, query: Query, *, tap: Tap = NO_TAP, pause: Pause = go_on) -> Trace:
    """Run one query.

    Args:
        checkpoint: The checkpoint to run it on; many threads may share it.
        tap: Sees or changes values in every call of the model, after the query's own interventions. The query does
            not contain it, so do not use it if you cache traces by their query.
        pause: Called between two rounds of decoding.

    Returns:
        The trace. Equal queries on equal checkpoints give equal traces if torch has the same number of threads:
        another number sums in another order, and numbers then differ by rounding (about 6e-6). The library uses
        torch's threads, the app one; `torch.set_num_threads(1)` before the run gives the app's numbers to the last
        bit.

    Raises:
        QueryError: The query does not fit the checkpoint: it is for another one, its source is empty or too long, a
            forced id is out of range, the model lacks what an intervention names, beam search did not find the
            requested result, or the model computes a value that is not finite (the error names the first site).
    """
    return run_batch(checkpoint, [query], tap=tap, pause=pause)[0]


@torch.inference_mode()
def run_batch(
    checkpoint: Runnable, queries: Sequence[Query], *, maps: bool = True, tap: Tap = NO_TAP, pause: Pause = go_on
) -> tuple[Trace, ...]:
    """Run several queries as one batch; shorter sources and outputs are padded.

    Args:
        queries: The queries, all with the same interventions.
        maps: Keep attention weights. If False, the traces' maps are empty, [layer, head, 0, 0]: at 512 pieces maps
            are nearly all of a trace's memory.
        tap: As in `run`; one that mixes tokens also mixes in a batch's padding.
        pause: As in `run`.

    Returns:
        One trace per query, in order. Their maps and masks have the padded shape.

    Raises:
        QueryError: As `run`; or there is no query, or their interventions differ.
    """
    _check_batch(queries)
    reading = read(checkpoint, queries, maps=maps, tap=tap)
    return verify_and_trace(reading, draft_for(reading), pause)


@torch.inference_mode()
def write(checkpoint: Runnable, queries: Sequence[Query], *, pause: Pause = go_on) -> list[tuple[int, ...]]:
    """What `run_batch` writes for the same queries, as ids, without traces; arguments and errors as there."""
    _check_batch(queries)
    reading = read(checkpoint, queries, maps=False)
    draft = draft_for(reading)
    found = settled(reading, draft, pause) if draft is not None else None
    return found or [output.ids for output in reading.decode(pause)]


def _check_batch(queries: Sequence[Query]) -> None:
    if not queries:
        raise QueryError("a batch needs at least one query.")
    if len({query.interventions for query in queries}) > 1:
        raise QueryError(
            "all queries of a batch must have the same interventions; run queries with different interventions "
            "separately."
        )


@torch.inference_mode()
def replay(checkpoint: Runnable, trace: Trace, sites: Sequence[str], *, tap: Tap = NO_TAP) -> dict[str, np.ndarray]:
    """Read a finished run once more, with its interventions, and record sites.

    Sites are names or patterns of `transformer.tap.sites`, such as `"decoder.*.cross_attn.queries"`. Each value has
    the axes of `SITES` without the batch, in float32, masks in bool. Row `trace.row_of(t)` of a decoder site is what
    step t saw. `tap` is the tap that the run had besides its query. A QueryError says that the trace is of another
    checkpoint, that a pattern matches no site, or that the model computes a value that is not finite.
    """
    model, src_ids = checkpoint.model, torch.tensor([trace.src_ids])
    tap = tap_of_run(checkpoint, trace.query, tap)
    memory, seen = recording_pass.read_source(model, src_ids, sites, tap=tap)
    read_ids, src_mask = torch.tensor([trace.read_ids], dtype=torch.long), model.source_mask(src_ids)
    seen |= recording_pass.read_target(model, read_ids, memory, src_mask, sites, tap=tap)
    values = {site: recording_pass.alone(site, value) for site, value in seen.items()}
    for pattern in sites:
        if not any(fnmatchcase(site, pattern) for site in values):
            raise QueryError(
                "{model} has no site that matches {pattern}; transformer.tap.sites lists all sites.",
                model=checkpoint.name,
                pattern=repr(pattern),
            )
    return values


@torch.inference_mode()
def each_layer(
    checkpoint: Runnable,
    trace: Trace,
    kind: Kind,
    work: Callable[[np.ndarray, int], _Result],
    *,
    layers: Sequence[int] | None = None,
    tap: Tap = NO_TAP,
) -> list[_Result]:
    """Call `work` with the maps [head, query, key] of each layer in order, or of the layers named, from 0.

    `work` takes a layer's maps and its number, and returns what is kept. If the trace keeps its maps, nothing is
    computed again. `tap` is the tap that the run had besides its query. A QueryError says that the trace is of
    another checkpoint, or that the model has no such attention or layer.
    """
    wanted = range(len(trace.maps(kind))) if layers is None else layers
    for layer in wanted:
        if not 0 <= layer < len(trace.maps(kind)):
            raise QueryError(
                "{kind} attention has no layer {layer}; its layers are numbered 0 to {last}.",
                layer=layer,
                kind=repr(kind),
                last=len(trace.maps(kind)) - 1,
            )
    if trace.keeps_maps:
        return [work(trace.maps(kind)[layer], layer) for layer in wanted]
    tap, attention = tap_of_run(checkpoint, trace.query, tap), anatomy(checkpoint.config).attention(kind)
    sites, results = {attention.site(layer, "weights"): layer for layer in wanted}, dict[int, _Result]()
    if not tap.causal:
        return [work(_by_prefixes(checkpoint, trace, site, tap), layer) for site, layer in sites.items()]

    def see(site: str, value: Tensor) -> None:  # all are computed, as when they were recorded
        if site in sites:
            results[sites[site]] = work(recording_pass.alone(site, value), sites[site])
            if len(results) == len(sites):
                raise _EnoughError

    model, src_ids, tap = checkpoint.model, torch.tensor([trace.src_ids]), tap.also(Observer([WEIGHTS], see))
    with suppress(_EnoughError):  # source and output are read as in the recording pass; no logits are needed
        memory = model.encode(src_ids, tap=tap) if model.anatomy.reads else None
        if attention.stack == "decoder":
            model.decode(torch.tensor([trace.read_ids]), memory, model.source_mask(src_ids), tap=tap)
    return [results[layer] for layer in wanted]


class _EnoughError(Exception):
    """All requested values were seen."""


def _by_prefixes(checkpoint: Runnable, trace: Trace, site: str, tap: Tap) -> np.ndarray:
    """One layer's maps, row by row where a tap mixes tokens; see `transformer.runs.recording_pass`."""
    model, src_ids = checkpoint.model, torch.tensor([trace.src_ids])
    memory, seen = recording_pass.read_source(model, src_ids, [site], passed=[WEIGHTS], tap=tap)
    if site not in seen:
        read_ids, mask = torch.tensor([trace.read_ids]), model.source_mask(src_ids)
        seen = recording_pass.read_target(model, read_ids, memory, mask, [site], passed=[WEIGHTS], tap=tap)
    return recording_pass.alone(site, seen[site])


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
            (found[place],) = run_apart(checkpoint, [queries[place]], most_map_bytes=most_map_bytes, pause=pause)
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
