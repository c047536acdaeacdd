"""Look at a finished run more closely: one more pass over it that records whatever sites are named.

A trace keeps weights and masks; queries, keys, values, scores and all the rest are made again when somebody looks at
them, as they would take many times the memory.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import torch

from transformer.errors import QueryError
from transformer.model.tap import Recorder, tap_of
from transformer.runs.running import Runnable
from transformer.runs.trace import Trace


@torch.inference_mode()
def replay(checkpoint: Runnable, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
    """Read a finished run once more, teacher-forced, and record sites.

    Args:
        checkpoint: What the trace was made with.
        trace: The run.
        sites: Names or patterns of `transformer.model.tap.SITES`, such as `"decoder.*.cross_attn.queries"`.

    Returns:
        Each site with its value as in `SITES`, without the batch axis; float32, masks bool. Row t of a decoder site
        is what step t saw.

    Raises:
        QueryError: The trace is of another checkpoint, or a pattern matches no site.
    """
    if trace.query.checkpoint != checkpoint.content_hash:
        raise QueryError(f"this run was made with another checkpoint than {checkpoint.name}; run it again.")
    recorder = Recorder(tuple(sites))
    checkpoint.model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]), tap=tap_of(recorder))
    values = {site: _alone(site, value.numpy()) for site, value in recorder.values.items()}
    for pattern in sites:
        if not any(fnmatchcase(site, pattern) for site in values):
            raise QueryError(f"{checkpoint.name} has no site {pattern!r}; transformer.tap.SITES lists them.")
    return values


def _alone(site: str, value: np.ndarray) -> np.ndarray:
    """Take the one run out of its batch; the position vectors have no batch axis."""
    alone = value if site.endswith("embedding.positions") else value[0]
    alone.flags.writeable = False
    return alone
