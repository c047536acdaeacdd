"""What pages share of drawing: notes, charts with their sentence, things beside each other, tables to save."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, TypeVar

import pandas as pd

from glassformer.charts.theme import Spec
from glassformer.components.plotly_component import figure_json, plotly_view
from glassformer.shared import cover_box
from glassformer.shared.csv_export import Origin, Table, csv_bytes, decoding_of, saved, with_origin
from glassformer.shared.i18n import here, st
from glassformer.shared.page_style import TABLE_BEHIND
from glassformer.state import session
from glassformer.state.language import current
from glassformer.state.view import MAIN, SECOND
from transformer.i18n import joined, say, through

_Opened = TypeVar("_Opened")
_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")
# Escapes do not keep Streamlit from making links, arrows and pictures of plain text such as "www.", "a@b.c", "->"
# and ":streamlit:". A word joiner inside, which nobody sees, does.
_REWRITTEN = re.compile(r"(?<=[-<>~])(?=[->=])|(?=@)|(?<=:)(?=[/a-z])|(?<=www)(?=\.)", re.IGNORECASE)
_TAGS = re.compile(r"<[^>]*>|[\u2068\u2069]")
_WORD_JOINER = "\u2060"
LEAST_FITTED = 300  # pixels of a chart that is fitted to a window; one with many rows says more: `meta.least_height`


@through
def plain(text: str) -> str:
    """Text as Streamlit's Markdown shows it letter by letter; a sentence stays one.

    Every ASCII punctuation mark is escaped, which Markdown allows; a line break would start a new paragraph.
    """
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", _REWRITTEN.sub(_WORD_JOINER, text))


@through
def with_code(text: str) -> str:
    """Text letter by letter, but what a sentence of ours has between backticks is code; a sentence stays one."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # one of them has no partner
        return plain(text)
    coded = [f"`{part}`" if part.strip() else _escaped(f"`{part}`") for part in parts[1::2]]
    return "".join(_escaped(text) + code for text, code in zip_longest(parts[::2], coded, fillvalue=""))


@through
def strong(text: str) -> str:
    """Text in heavy letters, letter by letter as it is; a sentence stays one."""
    return f"**{plain(text)}**"


def notes(sentences: Sequence[str]) -> None:
    """Say what a reader should know, one line each."""
    if sentences:
        st.info(joined("  \n", map(plain, sentences)), icon=":material/info:")


def beside(*draw: Callable[[], object], widths: Sequence[int] = (), gap: Literal["medium", "large"] = "large") -> None:
    """Draw things beside each other, in columns of such widths relative to each other; alike if not given."""
    for column, one in zip(st.columns(widths or len(draw), gap=gap), draw, strict=True):
        with column:
            one()


def origin(key: str, title: str, *, of_sentence: bool = True) -> Origin:
    """What a chart or a table is of, for its files: the sentence or the model alone. Its key begins with its slot."""
    slot = SECOND if key.startswith(SECOND) else MAIN
    stands = session.standing(slot)
    query = stands.last_query if of_sentence else None
    name = str(st.session_state.get(f"{slot}{session.MODEL}") or st.session_state.get(session.MODEL) or "")
    if query is None:
        return Origin(checkpoint=name, chart=here(title))
    return Origin(
        checkpoint=name,
        sentence=query.source,
        decoding=decoding_of(query),
        chart=here(title),
        rows=here(stands.last_rows),
    )


def csv_button(
    table: pd.DataFrame | Table, *, key: str, title: str, of_sentence: bool = True, of: Origin | None = None
) -> None:
    """Draw the button under a table that saves its numbers.

    The table may also be what makes its columns once somebody saves it, so that a page which is drawn at every step
    need not write it each time. A session keeps that: it must not hold a run. `of` is what the table is of, where
    that is neither the sentence at hand nor the model alone.
    """
    if cover_box.covered(key):
        return
    of = of or origin(key, title, of_sentence=of_sentence)
    st.download_button(
        say("Table as CSV"),
        saved(table, of, current()) if callable(table) else csv_bytes(with_origin(table, of, current())),
        file_name=f"{of.stem('')}.csv",
        mime="text/csv",
        key=key,
        on_click="ignore",
        icon=":material/download:",
    )


def opening(key: str, heading: str, opens: Sequence[_Opened], take: Callable[[_Opened], object], **look: Any) -> Any:
    """A column of buttons, each of which opens what stands in its place in `opens`.

    A session keeps `take`: it must not hold a run.
    """
    order = tuple(opens)

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None and int(click["row"]) < len(order):
            take(order[int(click["row"])])

    return st.column_config.ButtonColumn(here(heading), pinned=True, on_click=go, key=key, **look)


def table_behind(make: Table, of: Origin, *, key: str) -> str:
    """Draw a button that nobody sees, for the CSV button of a chart of ours to press; returns its CSS selector.

    What a browser has of a chart may be rounded or a part; this writes the whole table, here, once somebody saves it.
    A session keeps `make`: it must not hold a run.
    """
    name = f"{key}{TABLE_BEHIND}"
    st.download_button(
        say("Table as CSV"),
        saved(make, of, current()),
        file_name=f"{of.stem(key)}.csv",
        mime="text/csv",
        key=name,
        on_click="ignore",
    )
    return f".st-key-{name} button"


def chart(
    figure: Spec,
    *,
    key: str,
    alt: str,
    how_to_read: str,
    said: Mapping[str, Any] | None = None,
    fit: bool = False,
    on_click: Callable[[], None] | None = None,
    table: Table | None = None,
    of_sentence: bool = True,
    of_lesson: bool = False,
    follows: Callable[[Origin, dict[str, Any]], str] | None = None,
    step: int | None = None,
) -> None:
    """Draw a chart with the sentence that says how to read it, in the session's language.

    Nothing of it is sent while a step of a lesson covers it.

    Args:
        figure: What a `..._spec` of `charts` made; its layout suggests the height.
        key: Names this place on the page.
        alt: The chart in one or two sentences, for people who cannot see it.
        how_to_read: One sentence.
        said: What else is said of it, as `glassformer.runs.picture.Said`.
        fit: Whether the chart is what its page is about: it takes the height that is left on the first screen.
        on_click: Called when a mark is clicked.
        table: Makes the columns of what is saved as CSV, where it is more than what is drawn. A session keeps it: it
            must not hold a run. None: what the figure says, or the browser makes one of what it draws.
        of_sentence: Whether it is of the sentence at hand, and not of the model alone.
        of_lesson: Whether it stands beside the page, and is nothing that a lesson would cover.
        follows: How it follows the step, as `plotly_view` wants it, by what its files are of and what of it is said
            at the step. None: the server draws each step.
        step: The step, from 0, of a run that is stepped through.
    """
    if not of_lesson and cover_box.stands_for(key, height=figure["layout"]["height"]):
        return
    of = origin(key, "", of_sentence=of_sentence)
    of, moment = at_a_moment(figure, of, key=key, alt=alt, how_to_read=how_to_read, said=said, language=current())
    if not of_lesson:
        cover_box.met(key, of.chart)
    make = table or figure.get("table")
    plotly_view(
        moment["figure"],
        key=key,
        alt=moment["alt"],
        height=moment["height"],
        caption=moment["caption"],
        said=moment["said"],
        fit=figure["layout"].get("meta", {}).get("least_height", LEAST_FITTED) if fit else 0,
        on_click=on_click,
        file=moment["file"],
        about=dict(moment["about"]),
        table=table_behind(make, of, key=key) if make else "",
        follows="server" if follows is None else follows(of, moment),
        step=step,
    )


def at_a_moment(
    figure: Spec, of: Origin, *, key: str, alt: str, how_to_read: str, said: Mapping[str, Any] | None, language: str
) -> tuple[Origin, dict[str, Any]]:
    """All of a chart that may differ from step to step, as its component wants it, and what its files are of."""
    drawn = here(figure, language)
    of = replace(of, chart=title_of(drawn))
    return of, {
        "figure": figure_json(drawn),
        "alt": here(alt, language),
        "height": figure["layout"]["height"],
        "caption": here(how_to_read, language),
        "said": here(said, language),
        "file": of.stem(key),
        "about": [list(one) for one in here(of.columns(), language).items()],
    }


def title_of(figure: Spec) -> str:
    """The title of a chart as a reader sees it."""
    title = str(figure["layout"].get("title", {}).get("text", ""))
    return html.unescape(_TAGS.sub(" ", title))
