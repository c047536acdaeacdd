"""Differences of two runs: their outputs, the step's candidates, or the vectors of an encoder-only model.

First comes one sentence with the largest effect; then a chart, and both outputs with marks. A mark has a sign and a
colour: ≠ where the other output has a different piece, ▼ and ▲ where the other run gives the piece a probability that
is lower or higher by `LEAST` or more.

An encoder-only model has no outputs to compare: the page compares the vectors of each token, and the guesses for its
masked pieces.
"""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.charts.aligned import Row
from glassformer.charts.marks import Axis, Numbers, heat
from glassformer.extensions.what_if import pair_pictures
from glassformer.extensions.what_if.comparison import Pair
from glassformer.extensions.what_if.pair_pictures import Both, crossed_of, effect, rows_of, verdict
from glassformer.extensions.what_if.second_run import branch_off
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.hidden_pieces import gap_of, hidden, text_of
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.runs.viewed_run import own_choice
from glassformer.shared import cover_box, drawing
from glassformer.shared.i18n import frame, st
from transformer.analysis.hidden_pieces import Hidden
from transformer.analysis.stream import cosine
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy

TOTALS: Final = "compared_totals"
LEAST: Final = 0.05
MOST_PIECES: Final = 60
MARKS: Final = say(
    "≠ marks a token that differs from the other output. ▼ or ▲ marks a token of the left output whose probability "
    "is at least {least:g} lower or higher in the right run.",
    least=LEAST,
)
OTHER_PIECES: Final = say(
    "The two models have different vocabularies, so neither can read the other's output token by token. The page "
    "therefore shows each output's log-probability only in its own run, and no KL divergences."
)

ONE_MODEL: Final = say(
    "Both outputs come from the same model and the same source. After the same tokens, the model always predicts "
    "the same distribution, so the KL divergence is 0 at every step, and an output has the same log-probability in "
    "both runs."
)


def head(pair: Pair[OpenRun], place: AbstractContextManager[object]) -> Both:
    """Draw the difference of two runs' outputs, above both, and what cannot be compared.

    Returns the left output in both runs, and the right one; None if that is not defined.
    """
    both = attempt(lambda: crossed_of(pair))
    if pair.is_one_model:
        drawing.explain(ONE_MODEL)
    elif not pair.share_vocabulary:
        drawing.explain(OTHER_PIECES)
    if not cover_box.covered(pair_pictures.outputs.key):
        with place:
            st.markdown(drawing.strong(verdict(pair)))
            drawing.explain("" if both is None else drawing.plain(effect(pair, both[0])))
    return both


def _marked(pair: Pair[OpenRun], both: Both) -> None:
    rows = rows_of(pair, both)
    more = ["…"] * (len(rows) > MOST_PIECES)  # the chart below has them all
    left = [_piece(row.left, row, before=row.p_left, after=row.p_crossed) for row in rows[:MOST_PIECES] if row.left]
    right = [_piece(row.right, row) for row in rows[:MOST_PIECES] if row.right]
    for name, pieces in ((say("Left output"), left), (say("Right output"), right)):
        st.markdown(say("**{name}:** {pieces}", name=name, pieces=joined(" ", pieces + more)))
    st.caption(MARKS)


def _piece(piece: str, row: Row, *, before: float | None = None, after: float | None = None) -> str:
    shown = drawing.plain(piece)
    if not row.same:
        return f":violet-badge[≠ {shown}]"
    if before is None or after is None or abs(after - before) < LEAST:
        return f":gray-badge[{shown}]"
    sign, colour = ("▼", "orange") if after < before else ("▲", "blue")
    return f":{colour}-badge[{sign} {shown} {before:.2f} → {after:.2f}]"


def draw(pair: Pair[OpenRun], both: Both) -> None:
    """Draw both outputs piece by piece as text, and what they sum up to."""
    if not cover_box.covered(pair_pictures.outputs.key):
        _marked(pair, both)
        _totals(pair, both)


def _totals(pair: Pair[OpenRun], both: Both) -> None:
    """Draw the log-probability of each output, in each run where that is defined."""
    names, runs = (say("Left output"), say("Right output")), (pair.left.trace, pair.right.trace)
    if both is None:
        headings: dict[str, str] = {"own": say("in its own run"), "piece": say("per token")}
        numbers = [[name, run.log_prob, run.log_prob / run.n_steps] for name, run in zip(names, runs, strict=True)]
    else:
        headings = {
            "left": say("in the left run"), "right": say("in the right run"), "difference": say("right − left"),
            "left_piece": say("per token, left"), "right_piece": say("per token, right"),
        }  # fmt: skip
        numbers = [_total(names[0], both[0].own, both[0].other), _total(names[1], both[1].other, both[1].own)]
    number = {name: st.column_config.NumberColumn(said, format="%.3f") for name, said in headings.items()}
    columns = {"output": st.column_config.TextColumn(say("Log-probability, in nats")), **number}
    _table(TOTALS, columns, numbers)


def _total(name: str, left: np.ndarray, right: np.ndarray) -> list[Any]:
    """A row of the table: log-probabilities of an output's pieces in both runs, sums and means."""
    sums = float(left.sum()), float(right.sum())
    return [name, *sums, sums[1] - sums[0], sums[0] / len(left), sums[1] / len(right)]


def draw_candidates(pair: Pair[OpenRun]) -> None:
    """Draw both lists of two runs with an output, and what changed between them; errors as of `read_by`."""
    take = partial(branch_off, own_choice(pair.main.trace.query))
    drawing.beside(*(partial(show, one, pair, take=take) for one in (pair_pictures.left, pair_pictures.right)))


def draw_alone(run: OpenRun, *, branches: bool) -> None:
    """Draw the candidates of a run that nothing is beside yet; where branches are compared, a click makes one."""
    pair = Pair("branches" if branches else "ways", run, run)
    show(pair_pictures.left, pair, take=partial(branch_off, own_choice(run.trace.query)))


VECTORS: Final = "compared_vectors"
HIDDEN: Final = "compared_hidden"
WRITES_NOTHING: Final = say("One of these models does not generate output, so there are no two outputs to compare.")
OTHER_TEXTS: Final = say("The two runs read different numbers of tokens, so their vectors cannot be paired.")
OTHER_WIDTHS: Final = say("The two models' vectors have different numbers of dimensions, so they cannot be compared.")
HOW_TO_READ: Final = say(
    "Each cell is the cosine between a token's two vectors, one from each run, at the same depth: 1 means the same "
    "direction, 0 a right angle."
)


def draw_vectors(pair: Pair[OpenRun]) -> None:
    """Draw what can be compared where there are no two outputs."""
    st.info(WRITES_NOTHING, icon=":material/info:")
    configs = [run.checkpoint.config for run in pair.runs]
    if not all(anatomy(config).reads for config in configs):
        return
    if len(pair.left.trace.src_ids) != len(pair.right.trace.src_ids):
        st.caption(OTHER_TEXTS)
        return
    if configs[0].d_model != configs[1].d_model:
        st.caption(OTHER_WIDTHS)
        return
    attempt(lambda: _vectors(pair))
    left, right = gap_of(pair.left), gap_of(pair.right)
    if left is not None and right is not None and pair.left.trace.src_ids == pair.right.trace.src_ids:
        attempt(lambda: _hidden_pieces(pair, left, right))


def alike(pair: Pair[OpenRun]) -> np.ndarray:
    """The cosine of both runs' vectors of each token [depth, token], after each layer that both have."""
    n_layers = min(anatomy(run.checkpoint.config).stack("encoder").n_layers for run in (pair.left, pair.right))
    sites = ["encoder.embedding.output", *(f"encoder.{layer}.output" for layer in range(n_layers))]
    left, right = (loading.replay(run.checkpoint, run.trace, sites) for run in (pair.left, pair.right))
    return np.stack([cosine(left[site], right[site]) for site in sites])


def _vectors(pair: Pair[OpenRun]) -> None:
    values = alike(pair)
    depths = [say("embedding"), *(say("layer {n}", n=n) for n in range(1, len(values)))]
    drawn = heat(
        say("Similarity of the two runs' vectors"),
        Axis(say("Depth"), depths),
        Axis(say("Token"), pair.left.trace.src_tokens),
        Numbers(say("cosine"), values),
        limits=(min(0.0, float(values.min())), 1.0),
        colour="source",
    )
    drawing.chart(drawn["spec"], key=VECTORS, alt=drawn["alt"], how_to_read=HOW_TO_READ)


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
        "piece": text(say("Hidden token")),
        "loss_left": number(say("loss left, in nats"), format="%.3f"),
        "loss_right": number(say("loss right, in nats"), format="%.3f"),
        "difference": number(say("right − left"), format="%+.3f"),
        "rank_left": number(say("Rank left")),
        "rank_right": number(say("Rank right")),
    }
    _table(HIDDEN, columns, losses(left, right, pair.left.trace.src_tokens))


def _table(key: str, columns: dict[str, Any], rows: list[list[Any]]) -> None:
    st.container(key=key).dataframe(
        frame(rows, columns=list(columns)), hide_index=True, column_config=columns, width="content"
    )
