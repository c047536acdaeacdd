"""Look at a finished run more closely: one more pass over it that records the sites you name.

A trace keeps weights and masks. Queries, keys, values, scores and the rest would take many times the memory, so they
are computed again when somebody looks at them.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import torch

from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Tap
from transformer.runs import recording
from transformer.runs.changing import tap_of_run
from transformer.runs.runnable import Runnable
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
    memory, seen = recording.read_source(model, src_ids, sites, tap=tap)
    read_ids, src_mask = torch.tensor([trace.read_ids], dtype=torch.long), model.source_mask(src_ids)
    seen |= recording.read_target(model, read_ids, memory, src_mask, sites, tap=tap)
    values = {site: recording.alone(site, value) for site, value in seen.items()}
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
