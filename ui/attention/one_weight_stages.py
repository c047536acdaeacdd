"""The first stages of a walk, from q · k to the weights: each a sentence, its arithmetic written out, and a chart.

A click on a key in any of them is followed in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

import charts
from transformer.analysis.one_weight import Walk
from ui.attention import one_weight_scores, one_weight_text
from ui.runs.open_run import OpenRun
from ui.runs.sides import Sides
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import frame, st
from ui.shared.numbers import powers
from ui.state import session
from ui.state.click import Click, place_of
from ui.state.view import Slot
from words import joined, say, say_n

PRODUCTS: Final = "walk_products"
SCORES: Final = "walk_scores"
MASKED: Final = "walk_masked"
WEIGHTS: Final = "walk_weights"
TABLE: Final = "walk_table"
VALUES: Final = "walk_values"
SHARE: Final = "walk_share"
NORMS: Final = "walk_norms"
SCORE: Final = say("score")
KEY: Final = say("Key")


@dataclass(frozen=True)
class OpenWeight:
    """What the stages are drawn from."""

    run: OpenRun  # the run
    walk: Walk  # the numbers
    axes: Sides  # what rows and columns are
    reasons: list[str]  # why each key is closed; "" if it is open
    # q, k and v of this head for every token that may be seen, each [token, d_head].
    vectors: tuple[np.ndarray, np.ndarray, np.ndarray]
    own_row: int | None = None  # the row, if the page chose it by itself

    @property
    def query(self) -> str:
        """The query's label."""
        return self.axes.queries[self.walk.query]

    @property
    def key(self) -> str:
        """The key's label."""
        return self.axes.keys[self.walk.key]


def stage(heading: str, text: str, formula: str) -> None:
    """Say what a stage does and write it out."""
    st.markdown(joined("\n", [heading, text, *display(formula)]))


def display(formula: str) -> list[str]:
    """Lines of Markdown that set a formula."""
    return ["", "$$", formula, "$$"]


def dot(o: OpenWeight) -> None:
    """Write out q · k."""
    w = o.walk
    stage(
        say("##### 1. q · k: how well do they match?"),
        say(
            "The query's vector q and the key's vector k have {n} numbers each. They are multiplied number by "
            "number, and the products added up. The largest terms are:",
            n=w.d_head,
        ),
        one_weight_text.dot(w),
    )


def products(o: OpenWeight) -> None:
    """Draw q, k and their products."""
    w = o.walk
    drawing.chart(
        charts.query_times_key_spec(
            w.q, w.keys[w.key], title=say("q, k and their products"), query=o.query, key=o.key
        ),
        key=o.run.key(PRODUCTS),
        alt=say(
            "The vectors q of {query} and k of {key}, {n} numbers each, and their products.",
            query=o.query,
            key=o.key,
            n=w.d_head,
        ),
        how_to_read=say(
            "q · k = Σᵢ qᵢ kᵢ: where q and k have one colour the product is positive, and purple bars add to the "
            "match; where they differ, green bars take away."
        ),
    )


def _key_chart(
    o: OpenWeight,
    chart: str,
    values: np.ndarray,
    *,
    title: str,
    alt: str,
    how_to_read: str,
    value_name: str = SCORE,
    before: tuple[str, np.ndarray] | None = None,
    closed: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw a number of every key; a click follows that key."""
    figure = charts.key_row_spec(
        values,
        o.axes.keys,
        title=title,
        value_name=value_name,
        chosen=o.walk.key,
        side=o.axes.key_side,
        key_axis=o.axes.key_axis,
        before=before,
        closed=closed,
        limits=limits,
    )
    follow = taking(o.run.slot, chart, place_of)
    drawing.chart(figure, key=o.run.key(chart), alt=alt, how_to_read=how_to_read, on_click=follow)


def scores(o: OpenWeight) -> None:
    """Draw the score of every key."""
    w = o.walk
    how_to_read = say("Pale: q · k. Dark: score = q · k / √{n}. Click a key to follow it.", n=w.d_head)
    if one_weight_scores.is_otherwise(o.run.checkpoint.config, w):
        stage(*one_weight_scores.stage(o.run.checkpoint.config, w))
        how_to_read = say("Pale: q · k. Dark: the score. Click a key to follow it.")
    else:
        stage(
            say("##### 2. ÷ √d_head: the score"),
            say(
                "The same is done with every key. Dividing by √{n} keeps the scores of long vectors from growing so "
                "large that the softmax gives all to one key.",
                n=w.d_head,
            ),
            one_weight_text.score(w),
        )
    _key_chart(
        o,
        SCORES,
        w.scores,
        title=say("q · k of every key, and its score"),
        before=("q · k", w.dots),
        alt=say_n(
            "q · k and scores of {n} key; the chosen one, {key}, has {score:.3f}.",
            "q · k and scores of {n} keys; the chosen one, {key}, has {score:.3f}.",
            len(o.axes.keys),
            key=o.key,
            score=w.scores[w.key],
        ),
        how_to_read=how_to_read,
    )


def mask(o: OpenWeight) -> None:
    """Draw the scores after the mask."""
    w = o.walk
    reason = o.reasons[w.key]
    n_closed = int((~w.allowed).sum())
    what: str = say("The mask adds 0 where the query may look and −∞ where it may not.")
    how_to_read: str = say(
        "Each bar is score + mask; hatched keys are closed, their score is −∞. Click a key to follow it."
    )
    if w.how.fill is not None:
        what = one_weight_scores.replaced(w.how.fill)
        how_to_read = say("Each bar is a score; hatched keys are closed. Click a key to follow it.")
    said = [
        what,
        say_n("In this row it closes {n:,} key.", "In this row it closes {n:,} keys.", n_closed)
        if n_closed
        else say("In this row it closes none."),
        say("The chosen key is {reason}:", reason=reason) if reason else say("The chosen key is open:"),
    ]
    stage(say("##### 3. + mask: who may be seen?"), joined(" ", said), one_weight_text.masked(w))
    closed_at = "−∞" if w.how.fill is None else one_weight_text.number(w.how.fill)
    _key_chart(
        o,
        MASKED,
        w.scores,
        title=say("Scores after the mask"),
        closed=[joined(", ", [closed_at, reason]) if reason else "" for reason in o.reasons],
        alt=say("Scores after the mask; {closed} of {all} keys are closed.", closed=n_closed, all=len(o.axes.keys)),
        how_to_read=how_to_read,
    )


def softmax(o: OpenWeight) -> None:
    """Draw the weights."""
    w = o.walk
    stage(
        say("##### 4. softmax: the weights"),
        say(
            "Subtract the row's largest score, raise e to the difference d, and divide by the sum of these over the "
            "row: the weights are between 0 and 1 and sum to 1."
        )
        if w.peak is not None
        else say("No key is open, so all weights are 0."),
        one_weight_text.softmax(w),
    )
    _key_chart(
        o,
        WEIGHTS,
        w.weights,
        title=say("Weights of this row"),
        value_name=say("weight"),
        closed=[reason if not weight else "" for reason, weight in zip(o.reasons, w.weights, strict=True)],
        limits=(0.0, 1.0),
        alt=say(
            "Attention weights of {query} over the keys; {key} gets {weight:.3f}.",
            query=o.query,
            key=o.key,
            weight=w.weights[w.key],
        ),
        how_to_read=say("weight = exp(score − max) / Σ exp(score − max). Click a key to follow it."),
    )


def table(o: OpenWeight) -> None:
    """The softmax of the row, line by line; the largest weights where there are many keys."""
    rows, total = one_weight_text.softmax_table(o.walk)
    lines = []
    for row in rows:
        name = other_keys(row.n_keys) if row.key is None else f"{row.key + 1}: {drawing.plain(o.axes.keys[row.key])}"
        cells = [name, *map(_written, (row.score, row.exp, row.weight))]
        lines.append([f"**{cell}**" if row.key == o.walk.key and cell else cell for cell in cells])
    lines.append([say("Sum"), "", _written(total), "1" if o.walk.peak is not None else "0"])
    said = [say("The softmax of this row, line by line.")]
    if o.walk.peak is not None:
        said.append(say("The largest score, max, is {score}.", score=_written(one_weight_text.number(o.walk.peak))))
    st.markdown(joined(" ", said))
    with st.container(key=o.run.key(TABLE)):
        table = frame(lines, columns=[KEY, say("Score"), say("exp(score − max)"), say("Weight")])
        alt = say("Scores, exponentials and weights of the keys of {query}.", query=o.query)
        st.table(table, hide_index=True, alt=alt)


def _written(number: str) -> str:
    """A number in Python's writing as the formulas beside the table have it: −0.5534, 1.5 × 10⁻⁷, −∞."""
    return powers(number).replace("-", "−").replace("inf", "∞")


def other_keys(count: int) -> str:
    """What stands for the keys that are not listed."""
    return say_n("{n:,} other key", "{n:,} other keys", count)


def taking(slot: Slot, chart: str, read: Callable[[Click], int | None], *, into: str = "key") -> Callable[[], None]:
    """Callback of a click on a chart: what was clicked is looked at everywhere.

    Args:
        slot: Where the chart is drawn.
        chart: Its name.
        read: What a click means; None: nothing.
        into: The field of the view that is chosen by it.
    """
    return on_click(f"{slot}{chart}", read, lambda place: session.replace(slot, **{into: place}))
