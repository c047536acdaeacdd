"""What each head does, measured for the sentence at hand: one measure of all heads, one head's rows, and a table.

The measures and their sources stand in `transformer.analysis.head_statistics`. No head gets a label here: what is
shown is measured, for this sentence alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import charts
from charts.groups import HOW_TO_READ as HOW_TO_READ_GROUPS
from charts.statistics import HOW_TO_READ_HEADS, HOW_TO_READ_ROWS
from charts.theme import capitalised
from transformer.analysis.head_statistics import (
    NAMES,
    Measure,
    Name,
)
from transformer.model.anatomy import anatomy
from ui.attention import controls
from ui.attention.head_counting import hides, measures_of
from ui.attention.head_measures import UNITS, Words, words
from ui.runs.attempt import attempt
from ui.runs.given import GivenLooking
from ui.runs.groups import size_of
from ui.runs.looking import Looking
from ui.runs.open_maps import AnyRun
from ui.runs.sides import KIND_NAMES, sides
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import here, st
from ui.state import session
from ui.state.click import cell_of
from ui.state.view import View
from words import joined, say, say_n

HEAD_MAP = "head_table_map"
HEAD_ROWS = "head_table_rows"
TABLE = "head_table"
OPEN = "head_table_open"
OPEN_BY_MEASURE = "head_table_open_by_measure"
MEASURE = "head_table_measure"
CSV = "head_table_csv"

OPEN_WIDTH = 118  # pixels
_LEAST_COLUMN = 74
MOST_WITHOUT_SCROLLING = 24  # heads
A_WEIGHT_IS_NO_CAUSE = say(
    "These numbers say where a head's weights lie and how much it writes, for this sentence alone; another sentence "
    "can give others. They do not say what a head is for: a weight is not a cause, and only taking the head away "
    "shows what the output owes to it."
)
NOT_CHOSEN = say("No head was chosen yet: this one is furthest from the mean of all heads.")
NOTHING = say("There is no number here: no row of these maps has a key that may be seen.")


def draw(run: AnyRun) -> None:
    """Draw the part "What heads do" of the Attention page."""
    kind, looking = run.view.kind, run.looking
    measures = attempt(lambda: measures_of(run))
    if measures is None:
        return
    if not measures:
        st.info(NOTHING, icon=":material/info:")
        return
    spoken = words(kind, None if run.checkpoint is None else anatomy(run.checkpoint.config))
    with st.container(horizontal=True, gap="small", key=run.key("measure_choices")):
        name = _choose_measure(run, measures, spoken)
        _open_by_measure(run, measures[name].means())
    n_heads, shown = measures[name].values.shape[1], _shown(run.looking, measures[name].means())
    drawing.beside(
        lambda: _head_map(run, measures[name], spoken[name], shown),
        lambda: _head_rows(run, measures[name], spoken[name], shown),
        widths=(2, 3) if n_heads <= 4 else (1, 1),  # more numbers need more room
    )
    _table(run, measures, spoken)
    st.caption(_scope(looking, measures))
    st.caption(A_WEIGHT_IS_NO_CAUSE)


def _scope(looking: Looking | GivenLooking, measures: dict[Name, Measure]) -> str:
    view = looking.view
    n_rows = int(measures["largest"].rows.sum())
    name = KIND_NAMES[view.kind]
    said = say_n(
        "{attention}, measured for this sentence alone, over {n} row.",
        "{attention}, measured for this sentence alone, over {n} rows.",
        n_rows,
        attention=name,
    )
    if hides(looking):
        said = say_n(
            "{attention}, measured over the {n} row that may be seen.",
            "{attention}, measured over the {n} rows that may be seen.",
            n_rows,
            attention=name,
        )
    if not view.words and not view.hide_special:
        return said
    pieces = say("Pieces are measured, special ones too, whatever other parts of this page merge or hide.")
    return joined(" ", [said, pieces])


def _choose_measure(run: AnyRun, measures: dict[Name, Measure], spoken: dict[Name, Words]) -> Name:
    """Draw the choice; a measure that this attention lacks is remembered for the next one that has it."""
    asked = session.view(run.slot).measure
    if asked not in NAMES:
        drawing.notes((say("“{name}” in the link is the name of no measure; another one is shown.", name=asked),))
        session.replace(run.slot, measure=View.measure)
    return choices.menu(
        choices.field(run.slot, "measure", key=MEASURE),
        say("Measure in the charts"),
        {name: capitalised(spoken[name].title) for name in measures},
        otherwise="entropy_share",
        bare=True,
        width=360,
    )


def _open_by_measure(run: AnyRun, means: np.ndarray) -> None:
    """Draw a menu of all heads, the lowest first: in the table the keyboard can read, but neither sort nor press."""
    places = np.argsort(means, axis=None, kind="stable").tolist()
    n_heads = means.shape[1]
    slot, kind, key = run.slot, run.view.kind, run.key(OPEN_BY_MEASURE)

    def label(place: int) -> str:
        return say("{head}: {mean:.2f}", head=_head_name(*divmod(place, n_heads)), mean=means.flat[place])

    def go() -> None:
        place = st.session_state.get(key)
        if place is not None:
            controls.open_head(slot, kind, *divmod(place, n_heads))
            st.session_state[key] = None

    st.selectbox(
        say("Open the map of a head; those with the lowest measure come first"),
        places,
        index=None,
        label_visibility="collapsed",
        key=key,
        format_func=label,
        placeholder=say("Open the map of a head, the lowest first"),
        on_change=go,
        width=360,
    )


def _head_name(layer: int, head: int) -> str:
    return say("Layer {layer}, head {head}", layer=layer + 1, head=head + 1)


def _shown(looking: Looking | GivenLooking, means: np.ndarray) -> tuple[int, int]:
    """The head that is chosen, else the one furthest from the mean of all heads, in the chosen layer if there is one.

    The address says nothing of the page's own choice.
    """
    layer, head = looking.view.layer, looking.view.head
    if layer is not None and head is not None:
        return layer, head
    apart = np.nan_to_num(np.abs(means - np.nanmean(means)) if np.isfinite(means).any() else means)
    if layer is not None:
        return layer, int(apart[layer].argmax())
    layer, head = divmod(int(apart.argmax()), means.shape[1])
    return layer, head


def _head_map(run: AnyRun, one: Measure, said: Words, shown: tuple[int, int]) -> None:
    slot, kind, key = run.slot, run.view.kind, run.key(HEAD_MAP)

    drawing.chart(
        charts.head_measure_spec(
            one.means(),
            title=say("All heads: {measure}", measure=said.full_title),
            value_name=UNITS[said.unit],
            chosen=shown,
            group=size_of(run),
        ),
        key=key,
        alt=say(
            "{attention}, layers by heads: {measure}. The table has the same numbers.",
            attention=KIND_NAMES[kind],
            measure=said.title,
        ),
        how_to_read=joined(
            " ",
            [
                HOW_TO_READ_HEADS,
                said.meaning,
                *[HOW_TO_READ_GROUPS] * (size_of(run) > 1),
                say("Click a cell to open its head."),
            ],
        ),
        on_click=on_click(key, cell_of, lambda cell: controls.open_head(slot, kind, *cell)),
    )


def _head_rows(run: AnyRun, one: Measure, said: Words, chosen: tuple[int, int]) -> None:
    looking = run.looking
    axes = sides(looking, looking.view.kind)
    means, counted = one.means(), one.rows[: len(axes.queries)]
    read = [
        *[NOT_CHOSEN] * (looking.view.layer is None or looking.view.head is None),
        HOW_TO_READ_ROWS,
        say(
            "It is {mean:.2f}; lower in {lower} of the other {others} heads.",
            mean=means[chosen],
            lower=int((means < means[chosen]).sum()),
            others=means.size - 1,
        ),
    ]
    if not counted.all():
        read.append(say("A row without the measure has no bar."))
    drawing.chart(
        charts.row_measure_spec(
            one.values[chosen][: len(axes.queries)],
            axes.queries,
            title=say("{head}: {measure}", head=_head_name(*chosen), measure=said.full_title),
            value_name=capitalised(UNITS[said.unit]),
            query_axis=axes.query_axis,
            marked_row=axes.current,
            top=1.0 if said.share else None,
            colour=axes.query_side,
        ),
        key=run.key(HEAD_ROWS),
        alt=say(
            "{measure} in each row of {head}, one bar a row.",
            measure=capitalised(said.title),
            head=_head_name(*chosen),
        ),
        how_to_read=joined(" ", read),
        fit=True,
    )


# ---------------------------------------------------------------- the table


def frame(measures: dict[Name, Measure]) -> pd.DataFrame:
    """One row a head, one column a measure: layer and head from 1, then the means."""
    means: dict[str, np.ndarray] = {name: one.means() for name, one in measures.items()}
    n_layers, n_heads = next(iter(means.values())).shape
    layers, heads = (index.ravel() + 1 for index in np.indices((n_layers, n_heads)))
    columns = {"layer": layers, "head": heads} | {name: mean.ravel() for name, mean in means.items()}
    return pd.DataFrame(columns)


def _table(run: AnyRun, measures: dict[Name, Measure], spoken: dict[Name, Words]) -> None:
    slot, kind, view, key = run.slot, run.view.kind, run.looking.view, run.key(OPEN)
    numbers = frame(measures)
    n_heads = int(numbers["head"].max())

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None:
            controls.open_head(slot, kind, *divmod(int(click["row"]), n_heads))

    columns: dict[str, Any] = {
        "open": st.column_config.ButtonColumn(
            here(say("Layer and head")),
            type="secondary",
            width=OPEN_WIDTH,
            pinned=True,
            alignment="left",
            on_click=go,
            key=key,
        )
    }
    columns |= {name: _column(spoken[name]) for name in measures}
    places = [divmod(row, n_heads) for row in range(len(numbers))]
    names = [joined("", ["● " * (place == (view.layer, view.head)), _head_name(*place)]) for place in places]
    st.container(key=run.key(TABLE)).dataframe(
        numbers[list(measures)].round(4).assign(open=here(names))[list(columns)],
        hide_index=True,
        height="content" if len(names) <= MOST_WITHOUT_SCROLLING else "auto",
        column_config=columns,
        alt=say("Measures of every head of {attention}, one row a head.", attention=KIND_NAMES[kind]),
    )
    st.caption(
        say(
            "Press a name to open that head; ● is the head chosen. Press a heading to sort by it; point at it for "
            "its formula."
        )
    )
    drawing.csv_button(numbers, key=run.key(CSV), title=say("heads of {attention}", attention=KIND_NAMES[kind]))


def _column(said: Words) -> Any:
    width = max(_LEAST_COLUMN, 18 + 6 * len(said.heading))  # all columns are in sight on a screen of 1280 pixels
    if said.share:
        return st.column_config.ProgressColumn(
            said.heading, help=said.meaning, format="%.2f", min_value=0.0, max_value=1.0, width=width
        )
    return st.column_config.NumberColumn(said.heading, help=said.meaning, format="%.2f", width=width)
