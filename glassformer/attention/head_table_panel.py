"""Part "What heads do": table of head measures, menus of measure and head, interface for an extension's columns."""

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from glassformer.attention import AttentionLook
from glassformer.attention import head_table_pictures as pictures
from glassformer.attention.attention_panels import below, for_head, map_controls
from glassformer.charts.theme import capitalised
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.head_measure_labels import MeasureLabels
from glassformer.runs.map_axes import KIND_NAMES
from glassformer.runs.open_run import AnyRun, OpenMaps
from glassformer.runs.show import show
from glassformer.runs.viewed_run import Viewed
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import draw_below
from glassformer.state import session
from transformer.analysis.head_statistics import NAMES, Name
from transformer.extensions import provided
from transformer.i18n import joined, say, say_n

OPEN_BY_MEASURE, MEASURE = "head_table_open_by_measure", "head_table_measure"

ALIKE: frozenset[Name] = frozenset({"entropy", "entropy_share", "largest", "distance"})
"""How far a head spreads. The table has one of these, as on 1280 pixels all columns are in sight; the file has all."""
HOW_TO_READ_LARGEST = say(
    "The keys that have the largest weight of most rows, and in how many of the rows; of neighbours, how far away."
)
MOST_WITHOUT_SCROLLING = 12  # heads
HOW_TO_USE = say(
    "Click a name to choose that head; ● marks the chosen head. Click a heading to sort; hover over it for its formula."
)
A_WEIGHT_IS_NO_CAUSE = say(
    "These numbers show where a head puts its weights and how large its output is, for this sentence only; another "
    "sentence can give different numbers. They do not show what the head is for: a weight is not a cause. Only "
    "removing the head shows how much the output depends on it."
)
NOTHING = say("Nothing to measure: in every row of these maps, the mask closes all keys.")


@dataclass(frozen=True, eq=False)
class HeadColumn:
    """A column of the table that an extension adds."""

    values: np.ndarray  # [layer, head]
    heading: str
    meaning: str  # how the numbers are made
    form: str = "%.4f"
    in_table: bool = True  # else it is in the file alone; the table has room for one


class HeadColumns:
    """What an extension measures of heads (`heads` of its record); each method does nothing by itself."""

    def measures(self, run: Viewed) -> Mapping[str, str]:
        """What the charts may show of it: the names in an address, each with its label."""
        return {}

    def at_step(self, run: AnyRun) -> bool:
        """Whether it measures at the step that is shown."""
        return False

    def controls(self, run: AnyRun) -> None:
        """Draw how it measures."""

    def columns(self, found: pictures.Heads) -> Mapping[str, HeadColumn]:
        """Its columns, once they are measured; called before the others draw."""
        return {}

    def charts(self, found: pictures.Heads, measure: str) -> None:
        """Draw the charts of one of its measures."""

    def under_table(self, found: pictures.Heads) -> None:
        """Draw what is under the table, such as how far it is."""


def draw(run: AnyRun, row: Any) -> None:
    """Draw the part "What heads do" of the Attention page, with its controls in `row`."""
    map_controls(run, row, "table")
    below(run, partial(_measures, run, row))


def _measures(run: AnyRun, row: Any) -> None:
    missing = say("The measure “share of the output norm” is missing.")
    heads = None if isinstance(run, OpenMaps) else attempt(partial(pictures.written, run), missing=missing)
    measured = attempt(lambda: pictures.heads_of(run, loading, heads))
    if measured is None:
        return
    if not measured.measures:
        st.info(NOTHING, icon=":material/info:")
        return
    more: tuple[HeadColumns, ...] = provided("heads")
    with row:
        _choose_measure(measured, more)
        for one in more:
            one.controls(run)
        _open_by_measure(measured)
    added = {name: column for one in more for name, column in one.columns(measured).items()}
    if measured.of_chosen is not None:  # above, where it is seen: a long table ends below the window
        st.markdown(drawing.plain(measured.of_chosen))
    _table(measured, added)
    for one in more:
        one.under_table(measured)
    _chosen(run, measured)
    asked = run.view.of(AttentionLook).measure
    others = [one for one in more if asked in one.measures(run)]
    for one in others:
        one.charts(measured, asked)
    if not others:
        drawing.beside(
            partial(show, pictures.all_heads, measured),
            partial(show, pictures.one_head, measured),
            widths=(2, 3) if measured.means.shape[1] <= 4 else (1, 1),  # more numbers need more room
        )
    draw_below(measured)
    drawing.explain(HOW_TO_USE, _scope(measured), A_WEIGHT_IS_NO_CAUSE)


def _chosen(run: AnyRun, found: pictures.Heads) -> None:
    """Lead to the map of the chosen head, and offer what can be done with it."""
    view = run.view
    if view.layer is None or view.head is None:
        return
    there = partial(session.replace, found.slot, panel="head")
    icon = ":material/arrow_forward:"
    st.button(say("Open its map"), key=run.key("head_table_open_map"), icon=icon, on_click=there)
    for_head(run, view.layer, view.head)


def _scope(found: pictures.Heads) -> str:
    view, name, n_rows = found.run.view, KIND_NAMES[found.run.view.kind], int(found.measures["largest"].rows.sum())
    said = say_n(
        "{attention}, measured on this sentence only, over {n} row.",
        "{attention}, measured on this sentence only, over {n} rows.",
        n_rows,
        attention=name,
    )
    if pictures.hides(found.run):
        said = say_n(
            "{attention}, measured over the {n} visible row.",
            "{attention}, measured over the {n} visible rows.",
            n_rows,
            attention=name,
        )
    if not view.words and not view.hide_special:
        return said
    pieces = say("All tokens count, including special tokens, even if other parts of this page merge or hide them.")
    return joined(" ", [said, pieces])


def _choose_measure(found: pictures.Heads, more: tuple[HeadColumns, ...]) -> None:
    """Draw the choice; a measure that this attention lacks is remembered for the next one that has it."""
    asked = session.view(found.slot).of(AttentionLook).measure
    others = {name: label for one in more for name, label in one.measures(found.run).items()}
    if asked not in {*NAMES, *others}:
        said = say(
            "The link names the measure “{name}”, which does not exist; a different measure is shown.", name=asked
        )
        drawing.notes((said,))
        session.replace(found.slot, measure=AttentionLook.measure)
    controls.menu(
        controls.field(found.slot, "measure", key=MEASURE),
        say("Measure in the charts"),
        {name: capitalised(found.spoken[name].title) for name in found.measures} | others,
        otherwise=pictures.OTHERWISE,
        bare=True,
        width=360,
    )


def _open_by_measure(found: pictures.Heads) -> None:
    """Draw a menu of all heads, the lowest first: in the table the keyboard can read, but neither sort nor press."""
    means, slot, kind, key = found.means, found.slot, found.run.view.kind, found.run.key(OPEN_BY_MEASURE)
    n_heads = means.shape[1]

    def label(place: int) -> str:
        return say("{head}: {mean:.2f}", head=pictures.head_name(*divmod(place, n_heads)), mean=means.flat[place])

    def go() -> None:
        place = st.session_state.get(key)
        if place is not None:
            session.replace(slot, **pictures.opened(kind, *divmod(place, n_heads)))
            st.session_state[key] = None

    named = say("Open a head's map (lowest value first)")
    st.selectbox(
        named,
        np.argsort(means, axis=None, kind="stable").tolist(),
        index=None,
        label_visibility="collapsed",
        key=key,
        format_func=label,
        placeholder=named,
        on_change=go,
        width=360,
    )


def _table(found: pictures.Heads, added: Mapping[str, HeadColumn]) -> None:
    run, slot, view, key = found.run, found.slot, found.run.view, found.run.key("head_table_open")
    kind, attention = view.kind, KIND_NAMES[view.kind]
    n_heads = found.means.shape[1]
    numbered = np.indices(found.means.shape) + 1
    measured: dict[str, np.ndarray] = {name: one.means() for name, one in found.measures.items()}
    each: dict[str, np.ndarray] = {"layer": numbered[0], "head": numbered[1], **measured}
    each |= {name: one.values for name, one in added.items()}
    numbers = pd.DataFrame({name: values.ravel() for name, values in each.items()})

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None:
            session.replace(slot, **pictures.chosen(kind, *divmod(int(click["row"]), n_heads)))

    places = [divmod(row, n_heads) for row in range(len(numbers))]
    marks = ["● " * (place == (view.layer, view.head)) for place in places]
    names = here([joined("", [mark, pictures.head_name(*place)]) for mark, place in zip(marks, places, strict=True)])
    columns: dict[str, Any] = {
        "open": st.column_config.ButtonColumn(
            here(say("Layer and head")),
            type="secondary",
            width=max(map(_button_width, names)),
            pinned=True,
            alignment="left",
            on_click=go,
            key=key,
        )
    }
    words = found.in_words
    if words is not None:
        numbers = numbers.assign(in_words=here([said for layer in words for said in layer]))
        columns["in_words"] = st.column_config.TextColumn(say("Largest weight on"), help=HOW_TO_READ_LARGEST, width=176)
    alike = found.name if found.name in ALIKE else pictures.OTHERWISE
    columns |= {name: _column(found.spoken[name]) for name in found.measures if name == alike or name not in ALIKE}
    columns |= {
        name: st.column_config.NumberColumn(one.heading, help=one.meaning, format=one.form, width=_wide(one.heading))
        for name, one in added.items()
        if one.in_table
    }
    st.container(key=run.key("head_table")).dataframe(
        numbers.round(4).assign(open=names)[list(columns)],
        hide_index=True,
        height="content" if len(names) <= MOST_WITHOUT_SCROLLING else "auto",
        column_config=columns,
        alt=say("Measures of every head of {attention}, one row per head.", attention=attention),
    )
    title = say("heads of {attention}", attention=attention)
    drawing.csv_button(numbers, key=run.key("head_table_csv"), title=title)


def _button_width(name: str) -> int:
    """Pixels of a cell with a button of this name, marked or not; a Chinese character is wider than a letter."""
    marked = f"● {name.removeprefix('● ')}"
    return 39 + math.ceil(sum(14 if unicodedata.east_asian_width(sign) in "WF" else 5.4 for sign in marked))


def _column(said: MeasureLabels) -> Any:
    look: dict[str, Any] = {"help": said.meaning, "format": "%.2f", "width": _wide(said.heading)}
    if said.share:
        return st.column_config.ProgressColumn(said.heading, min_value=0.0, max_value=1.0, **look)
    return st.column_config.NumberColumn(said.heading, **look)


def _wide(heading: str) -> int:
    return max(66, 18 + 6 * len(heading))
