"""What two runs of an encoder alone made of the text: how alike each token's vectors are, and what fits in its gaps.

Such a model writes nothing, so that there are no outputs to compare.
"""

from typing import Any, Final

import numpy as np

from glassformer.charts.heatmap import heatmap_spec
from glassformer.extensions.what_if.compare.pair import Pair
from glassformer.runs import loading
from glassformer.runs.attempt import attempt
from glassformer.runs.gaps import gap_of, hidden, text_of
from glassformer.runs.open_run import OpenRun
from glassformer.shared import drawing
from glassformer.shared.door import frame, st
from transformer.analysis.hidden_pieces import Hidden
from transformer.analysis.stream import cosine
from transformer.i18n import say
from transformer.model.anatomy import anatomy

VECTORS: Final = "compared_vectors"
HIDDEN: Final = "compared_hidden"
WRITES_NOTHING: Final = say("One of these models does not generate output, so there are no two outputs to compare.")
OTHER_TEXTS: Final = say("The two runs read different numbers of tokens, so their vectors cannot be paired.")
OTHER_WIDTHS: Final = say("The two models' vectors have different numbers of dimensions, so they cannot be compared.")
HOW_TO_READ: Final = say(
    "Each cell is the cosine between a token's two vectors, one from each run, at the same depth: 1 means the same "
    "direction, 0 a right angle."
)


def draw(pair: Pair[OpenRun]) -> None:
    """Draw what can be compared where there are no two outputs."""
    st.info(WRITES_NOTHING, icon=":material/info:")
    if not (_reads(pair.left) and _reads(pair.right)):
        return
    if (why := _apart(pair)) is not None:
        st.caption(why)
        return
    attempt(lambda: _vectors(pair))
    left, right = gap_of(pair.left), gap_of(pair.right)
    if left is not None and right is not None and pair.left.trace.src_ids == pair.right.trace.src_ids:
        attempt(lambda: _hidden_pieces(pair, left, right))


def _reads(run: OpenRun) -> bool:
    return anatomy(run.checkpoint.config).reads


def _apart(pair: Pair[OpenRun]) -> str | None:
    """Why the vectors cannot be compared; None if they can."""
    left, right = pair.left, pair.right
    if len(left.trace.src_ids) != len(right.trace.src_ids):
        return OTHER_TEXTS
    return None if left.checkpoint.config.d_model == right.checkpoint.config.d_model else OTHER_WIDTHS


def alike(pair: Pair[OpenRun]) -> np.ndarray:
    """The cosine of both runs' vectors of each token [depth, token], behind each layer that both have."""
    n_layers = min(anatomy(run.checkpoint.config).stack("encoder").n_layers for run in (pair.left, pair.right))
    sites = ["encoder.embedding.output", *(f"encoder.{layer}.output" for layer in range(n_layers))]
    left, right = (loading.replay(run.checkpoint, run.trace, sites) for run in (pair.left, pair.right))
    return np.stack([cosine(left[site], right[site]) for site in sites])


def _vectors(pair: Pair[OpenRun]) -> None:
    values = alike(pair)
    depths = [say("embedding"), *(say("layer {n}", n=n) for n in range(1, len(values)))]
    figure = heatmap_spec(
        values,
        queries=depths,
        keys=list(pair.left.trace.src_pieces),
        allowed=None,
        title=say("Similarity of the two runs' vectors"),
        query_axis=say("Depth"),
        key_axis=say("Token"),
        value_name=say("cosine"),
        limits=(min(0.0, float(values.min())), 1.0),
        colour="source",
        rows_sum_to_one=False,
    )
    drawing.chart(
        figure,
        key=VECTORS,
        alt=say("The cosine between the two runs' vectors, one row per depth, one column per token."),
        how_to_read=HOW_TO_READ,
    )


def losses(left: Hidden, right: Hidden, pieces: tuple[str, ...]) -> list[list[Any]]:
    """Each piece with its loss and its rank in both runs, when it alone is hidden; both are of the same places."""
    return [
        [
            pieces[int(place)], float(left.losses[i]), float(right.losses[i]),
            float(right.losses[i] - left.losses[i]), int(left.ranks[i]), int(right.ranks[i]),
        ]
        for i, place in enumerate(left.places)
    ]  # fmt: skip


def _hidden_pieces(pair: Pair[OpenRun], left_gap: int, right_gap: int) -> None:
    places = text_of(pair.left)
    left, right = hidden(pair.left, places, left_gap), hidden(pair.right, places, right_gap)
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    columns = {
        "piece": text(say("Hidden piece")),
        "loss_left": number(say("loss left, in nats"), format="%.3f"),
        "loss_right": number(say("loss right, in nats"), format="%.3f"),
        "difference": number(say("right − left"), format="%+.3f"),
        "rank_left": number(say("Rank left")),
        "rank_right": number(say("Rank right")),
    }
    rows = losses(left, right, pair.left.trace.src_pieces)
    st.container(key=HIDDEN).dataframe(
        frame(rows, columns=list(columns)), hide_index=True, column_config=columns, width="content"
    )
