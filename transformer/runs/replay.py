"""Look at a finished run more closely: one more pass over it, for the sites you name or the maps it did not keep.

A trace keeps weights and masks. Queries, keys, values, scores and the rest would take many times the memory, so they
are computed again when somebody looks at them.

The pass computes every attention as the run's own recording pass did, whichever layers are asked for: a layer's maps
are the same to the last bit as in a run that keeps them all. It ends after the last layer that was asked for.
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
from transformer.runs.model_protocols import Runnable
from transformer.runs.reading import WEIGHTS
from transformer.runs.trace import Trace


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
    """All that was asked for was seen."""


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
