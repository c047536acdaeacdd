"""The picture of the part "Your sentence": how spread out each head's attention is, over training.

Knows nothing of Streamlit.
"""

from typing import Final

import numpy as np

from glassformer.charts.heatmap import heatmap_spec
from glassformer.extensions.snapshots.grown import Growth, growth, hides
from glassformer.extensions.training_page.training_pictures import TRAINING
from glassformer.runs.picture import Plot
from glassformer.runs.seen import Seen
from glassformer.runs.sides import KIND_NAMES
from glassformer.state.click import cell_of, fields
from transformer.i18n import joined, say
from transformer.model.anatomy import EVERY_PART

HOW_TO_READ: Final = say(
    "Each row is a head and each column a snapshot. The entropy of a row of attention, divided by its maximum, is 1 "
    "when all open keys have the same weight and 0 when all weight is on one key; a cell is the mean over the rows."
)
READS_THE_FINISHED: Final = say("Every snapshot reads the output of the finished checkpoint.")
CLICK: Final = say("Click a cell to open that head at that snapshot.")


def _scene(run: Seen) -> Growth | None:
    return None if hides(run) else growth(run)


SENTENCE = TRAINING.part("sentence", _scene)


@SENTENCE.picture("training_entropy", say("Entropy of the heads over training"), follows="still")
def entropies(found: Growth) -> Plot | None:
    """The entropies of all heads of the attention that is looked at."""
    kind, known = found.run.view.kind, found.known()
    if not known:
        return None
    shares = np.stack([one.entropies[kind] for _, one in known], axis=-1)  # [layer, head, snapshot]
    n_layers, n_heads, count = shares.shape
    if not np.isfinite(shares).any():
        return None
    heads = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    steps = [moment.step for moment, _ in known]
    spec = heatmap_spec(
        shares.reshape(-1, count).astype(np.float32),
        queries=[say("{layer}.{head}", layer=layer + 1, head=head + 1) for layer, head in heads],
        keys=[f"{step:,}" for step in steps],
        title=say("Entropy of the heads over training: {attention}", attention=KIND_NAMES[kind]),
        query_axis=say("Layer and head"),
        key_axis=say("Training step"),
        allowed=None,
        value_name=say("entropy as a share of its maximum"),
        rows_sum_to_one=False,
    )
    read = [HOW_TO_READ, *[READS_THE_FINISHED] * (EVERY_PART.attention(kind).stack == "decoder"), CLICK]
    alt = say(
        "{attention}: the mean entropy of all heads goes from {before:.2f} of its maximum at step {first:,} to "
        "{after:.2f} at step {last:,}.",
        attention=KIND_NAMES[kind],
        before=float(np.nanmean(shares[..., 0])),
        after=float(np.nanmean(shares[..., -1])),
        first=steps[0],
        last=steps[-1],
    )
    how_to_read = joined(" ", read)
    return Plot(
        spec=spec, alt=alt, how_to_read=how_to_read, clicked=fields(cell_of, lambda cell: _meant(heads, steps, cell))
    )


def _meant(heads: list[tuple[int, int]], steps: list[int], cell: tuple[int, int]) -> dict[str, int]:
    """The head and the snapshot of a cell; `step` is that of the training."""
    layer, head = heads[cell[0]]
    return {"layer": layer, "head": head, "step": steps[cell[1]]}
