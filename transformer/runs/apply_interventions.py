"""Interventions of a run as one hook of the model (`Tap`), and the other run of activation patching."""

from collections.abc import Iterable, Sequence
from functools import partial

import torch

from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.model.taps import NO_TAP, Tap, both, tap_of
from transformer.runs import recording_pass
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.inputs import read_source
from transformer.runs.interventions import Ground, Intervention, fitted
from transformer.runs.interventions.base import Other
from transformer.runs.query import Query, Runnable

MOST_OTHER = 128  # pieces of another run


def tap_for(interventions: Iterable[Intervention], checkpoint: Runnable) -> Tap:
    """The tap that carries out all interventions, in order; an InterventionError if one makes no sense in the model."""
    parameter, other = checkpoint.model.get_parameter, partial(_other, checkpoint)
    return tap_of(
        *(
            visitor
            for one, config in fitted(interventions, checkpoint.config)
            for visitor in one.visitors(Ground(config, parameter, other))
        )
    )


def tap_of_run(checkpoint: Runnable, query: Query, tap: Tap = NO_TAP) -> Tap:
    """The tap of a run's interventions, then the one given; a QueryError if the run is of another checkpoint."""
    if query.checkpoint != checkpoint.content_hash:
        raise QueryError(
            "this run was made with a checkpoint other than {model}; make a new run.", model=checkpoint.name
        )
    return both(tap_for(query.interventions, checkpoint), tap)


@torch.inference_mode()
def _other(checkpoint: Runnable, text: str, patterns: Sequence[str]) -> Other:
    model, config = checkpoint.model, checkpoint.config
    source = read_source(checkpoint, Query(checkpoint=checkpoint.content_hash, source=text))
    src_ids = torch.tensor([source.ids])
    memory, values = recording_pass.read_source(model, src_ids, patterns, tap=NO_TAP)
    if not model.anatomy.writes:
        return Other(source.ids, (), values)
    prefix = Prefix(model, src_ids, cache=KVCache(config.n_decoder_layers), memory=memory)
    (written,) = collect(greedy(prefix, max_new=min(MOST_OTHER, source.room), forced=[source.forced]))
    read_ids = torch.tensor([[*source.prompt_ids, *written[:-1]]])
    values |= recording_pass.read_target(model, read_ids, memory, model.source_mask(src_ids), patterns, tap=NO_TAP)
    return Other(source.ids, tuple(written), values)
