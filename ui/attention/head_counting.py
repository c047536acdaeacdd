"""The measures of all heads of what is looked at, computed once for all visitors, in the model's thread."""

from __future__ import annotations

import numpy as np

from transformer.analysis.head_norms import norm_share, output_projections, site
from transformer.analysis.head_statistics import Measure, Name, measure_maps
from transformer.analysis.heads_by_layer import measure_by_layer
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import EVERY_PART
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.given import GivenLooking
from ui.runs.looking import Looking
from ui.runs.open_maps import AnyRun
from ui.runs.open_run import OpenRun
from words import say


def measures_of(run: AnyRun) -> dict[Name, Measure]:
    """All measures of the heads of the attention looked at; of given maps those that weights alone give.

    Raises:
        BusyError: The model has too much to do.
    """
    if isinstance(run, OpenRun):
        return measured(run.checkpoint, run.looking)
    maps, kind = run.trace, run.view.kind
    return loading.runner().compute(
        ("head_measures", maps.content_hash, kind),
        lambda: measure_maps(maps.maps(kind), maps.mask(kind), kind),
        nbytes=_nbytes,
    )


def _nbytes(found: dict[Name, Measure]) -> int:
    return sum(one.values.nbytes + one.rows.nbytes for one in found.values())


def measured(checkpoint: Checkpoint, looking: Looking) -> dict[Name, Measure]:
    """All measures of the heads of the kind looked at, over the rows that may be seen, computed once for all.

    Raises:
        BusyError: The model has too much to do.
    """
    kind, trace = looking.view.kind, looking.trace
    sites = [site(kind, layer) for layer in range(len(trace.maps(kind)))]
    heads = attempt(
        lambda: loading.replay(checkpoint, trace, sites), missing=say("The share of output norm is missing.")
    )
    n_rows = looking.n_rows if hides(looking) else None

    def work() -> dict[Name, Measure]:
        shares = None
        if heads:
            written = np.stack([heads[name] for name in sites])  # [L, H, Q, d]
            parts = output_projections(checkpoint.model, kind, n_heads=written.shape[1])
            shares = norm_share(written, parts)
        return measure_by_layer(checkpoint, trace, kind, shares=shares, n_rows=n_rows)

    # At 512 pieces this takes a second or more, so it is neither done again at a click nor by two at a time.
    return loading.runner().compute(
        ("head_measures", trace.query, trace.src_ids, trace.read_ids, kind, n_rows, bool(heads)),
        work,
        nbytes=_nbytes,
    )


def hides(looking: Looking | GivenLooking) -> bool:
    """Whether rows may be hidden; the source is always seen, and so are given maps."""
    if isinstance(looking, GivenLooking):
        return False
    return looking.view.guess and EVERY_PART.attention(looking.view.kind).stack == "decoder"
