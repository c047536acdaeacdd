"""Run queries on a checkpoint: decode, then read the whole output once more with a recording tap.

Shapes: B queries, S source tokens, T target tokens, V target vocabulary.
"""

from collections.abc import Sequence

import torch

from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.drafting import draft_for, settled, verify_and_trace
from transformer.runs.model_protocols import Runnable
from transformer.runs.query import Query
from transformer.runs.reading import Pause, go_on, read
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
            forced id is out of range, the model lacks what an intervention names, beam search did not find the result
            that was asked for, or the model computes a value that is not finite (the error names the first site).
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
