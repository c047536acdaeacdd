"""The last two stages of a walk: what a head makes of its weights, and what it adds to the sub-layer's output."""

from __future__ import annotations

import numpy as np

import charts
from ui.attention import one_weight_text
from ui.attention.one_weight_stages import KEY, NORMS, SHARE, VALUES, OpenWeight, display, other_keys, stage, taking
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import Click, place_of
from words import joined, say, say_n


def values(o: OpenWeight) -> None:
    """Draw each value times its weight."""
    w = o.walk
    dimension, formula = one_weight_text.head_output(w)
    stage(
        say("##### 5. · V: the head's output"),
        say(
            "Each key's value vector v is multiplied by its weight; the sum is the head's output o. Its largest "
            "number, dimension {place}:",
            place=dimension,
        ),
        formula,
    )
    shown = one_weight_text.shown_keys(w)
    others = np.delete(w.weighted, shown, axis=0)
    parts, labels = [w.weighted[shown]], [o.axes.keys[place] for place in shown]
    if len(others):
        parts.append(others.sum(axis=0, keepdims=True))
        labels.append(other_keys(len(others)))
    labels.append(say("sum: o"))
    closed = [o.reasons[place] for place in shown] + [""] * (len(labels) - len(shown))
    figure = charts.signed_rows_spec(
        np.concatenate([*parts, w.head_out[None]]),
        labels,
        title=say("Weight × value, and their sum"),
        row_axis=KEY,
        column_axis=say("Dimension"),
        value_name=say("weight × v"),
        marked=[shown.index(w.key)],
        closed=closed,
    )

    def key_of(click: Click) -> int | None:
        return shown[click.index[0]] if len(click.index) == 2 and click.index[0] < len(shown) else None

    drawing.chart(
        figure,
        key=o.run.key(VALUES),
        alt=say_n(
            "Weighted value of {n} key and their sum, the output of the head, {numbers} numbers each.",
            "Weighted values of {n} keys and their sum, the output of the head, {numbers} numbers each.",
            len(shown),
            numbers=w.d_head,
        ),
        how_to_read=say(
            "o = Σ weight · v: purple numbers are above 0, green ones below; the last row is the sum of those above "
            "it. Click a row to follow its key."
        ),
        on_click=taking(o.run.slot, VALUES, key_of),
    )


def output(o: OpenWeight) -> None:
    """Draw what the head adds to the sub-layer's output."""
    w = o.walk
    dimension, formula = one_weight_text.share(w)
    stage(
        say("##### 6. · W_O: what this head adds"),
        say(
            "This head's {n} columns of W_O turn o into y, its share of the sub-layer's output. Its largest number, "
            "dimension {place}:",
            n=w.d_head,
            place=dimension,
        ),
        formula,
    )
    others = np.delete(w.shares, w.head, axis=0).sum(axis=0)
    drawing.chart(
        charts.signed_rows_spec(
            np.stack([w.shares[w.head], others, w.bias, w.output]),
            [say("head {head}: y", head=w.head + 1), say("other heads"), say("bias"), say("sum")],
            title=say("From heads to the sub-layer's output"),
            row_axis=say("Part"),
            column_axis=say("Dimension of the model"),
            value_name=say("adds"),
            marked=[0],
        ),
        key=o.run.key(SHARE),
        alt=say(
            "What head {head}, the other heads and the bias add to the sub-layer's output of this row.",
            head=w.head + 1,
        ),
        how_to_read=say(
            "y = o · W_Oᵀ (this head's columns): purple numbers are above 0, green ones below; the last row is the "
            "sum of the rows above it, the sub-layer's output."
        ),
    )


def share(o: OpenWeight) -> None:
    """Write out how long that is, against the other heads' shares."""
    said = say("How much is that against the other heads? By length, the bias apart:")
    st.markdown(joined("\n", [said, *display(one_weight_text.norm_share(o.walk))]))


def lengths(o: OpenWeight) -> None:
    """Draw the lengths of all heads' shares."""
    w = o.walk
    slot, key = o.run.slot, o.run.key(NORMS)
    taken = {"layer": w.layer} | ({} if o.own_row is None else {"query": w.query})  # a head alone is nothing
    drawing.chart(
        charts.head_norms_spec(w.norms, title=say("Length of each head's share"), chosen=w.head),
        key=key,
        alt=say(
            "Length of what each of {all} heads adds; head {head} has {length:.3g}.",
            all=len(w.norms),
            head=w.head + 1,
            length=w.norms[w.head],
        ),
        how_to_read=say("‖head · W_O‖, the root of the sum of squares of y. Click a bar to follow that head."),
        on_click=on_click(key, place_of, lambda head: session.replace(slot, head=head, **taken)),
    )
