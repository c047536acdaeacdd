"""Runs of queries on a checkpoint, and replays of a finished run: values at sites, maps layer by layer.

A run decodes, then reads the whole output once more with a recording tap.

A trace keeps weights and masks. Queries, keys, values, scores and the rest would take many times the memory, so a
replay computes them again when they are needed: one more pass, for the sites you name or the maps the run did not keep.
Every attention is computed as in the run's own recording pass, whichever layers are requested: a layer's maps are the
same to the last bit as in a run that keeps them all. The pass ends after the last requested layer.

Shapes: B queries, S source tokens, T target tokens, V target vocabulary.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, Kind, anatomy
from transformer.model.taps import NO_TAP, Observer, Tap
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_of_run
from transformer.runs.drafting import draft_for, settled, verify_and_trace
from transformer.runs.query import Query, Runnable
from transformer.runs.reading import WEIGHTS, Pause, go_on, read
from transformer.runs.trace import Trace


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
    for value in values.values():
        value.flags.writeable = False
    for pattern in sites:
        if not any(fnmatchcase(site, pattern) for site in values):
            raise QueryError(
                "{model} has no site that matches {pattern}; transformer.tap.sites lists all sites.",
                model=checkpoint.name,
                pattern=repr(pattern),
            )
    return values


_Result = TypeVar("_Result")


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
            results[sites[site]] = work(_alone(value), sites[site])
            if len(results) == len(sites):
                raise _EnoughError

    with suppress(_EnoughError):
        _pass(checkpoint, trace, attention, tap.also(Observer([WEIGHTS], see)))
    return [results[layer] for layer in wanted]


class _EnoughError(Exception):
    """All requested values were seen."""


def _pass(checkpoint: Runnable, trace: Trace, attention: Attention, tap: Tap) -> None:
    """Read the source and the output as the recording pass did; no logits are needed."""
    model, src_ids = checkpoint.model, torch.tensor([trace.src_ids])
    memory = model.encode(src_ids, tap=tap) if model.anatomy.reads else None
    if attention.stack == "decoder":
        model.decode(torch.tensor([trace.read_ids]), memory, model.source_mask(src_ids), tap=tap)


def _by_prefixes(checkpoint: Runnable, trace: Trace, site: str, tap: Tap) -> np.ndarray:
    """One layer's maps, row by row where a tap mixes tokens; see `transformer.runs.recording_pass`."""
    model, src_ids = checkpoint.model, torch.tensor([trace.src_ids])
    memory, seen = recording_pass.read_source(model, src_ids, [site], passed=[WEIGHTS], tap=tap)
    if site not in seen:
        read_ids, mask = torch.tensor([trace.read_ids]), model.source_mask(src_ids)
        seen = recording_pass.read_target(model, read_ids, memory, mask, [site], passed=[WEIGHTS], tap=tap)
    return _alone(seen[site])


def _alone(value: Tensor) -> np.ndarray:
    """The one run of its batch, read-only."""
    maps: np.ndarray = value[0].numpy(force=True)
    maps.flags.writeable = False
    return maps
