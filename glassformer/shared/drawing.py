"""Drawing helpers: charts and their clicks, notes, columns, CSV buttons, escaped Markdown, a button for long work."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from glassformer.charts.theme import Spec
from glassformer.components.plotly_component import VIEW, figure_json, last_click
from glassformer.shared import cover_box
from glassformer.shared.csv_export import Origin, Table, csv_bytes, decoding_of, saved, with_origin
from glassformer.shared.i18n import here, st
from glassformer.shared.page_style import TABLE_BEHIND
from glassformer.state import session
from glassformer.state.language import current
from glassformer.state.view import MAIN, SECOND, Click
from transformer.i18n import joined, say, through

if TYPE_CHECKING:
    import pandas as pd

_Opened = TypeVar("_Opened")
_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")
# Markdown escapes do not stop Streamlit from making links, arrows and pictures of plain text such as "www.", "a@b.c",
# "->" and ":streamlit:". An invisible word joiner inside does.
_REWRITTEN = re.compile(r"(?<=[-<>~])(?=[->=])|(?=@)|(?<=:)(?=[/a-z])|(?<=www)(?=\.)", re.IGNORECASE)
_TAGS = re.compile(r"<[^>]*>|[\u2068\u2069]")
_WORD_JOINER = "\u2060"
LEAST_FITTED = 300  # pixels of a chart that is fitted to a window; one with many rows says more: `meta.least_height`


@through
def plain(text: str) -> str:
    """Escape all ASCII punctuation of a text for Streamlit's Markdown, and join its lines; a `Sentence` stays one."""
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
        st.info(joined("  \n", map(with_code, sentences)), icon=":material/info:")


def explain(*said: str) -> None:
    """Say more of what is shown, in Markdown, folded: the pictures come first."""
    if any(said):
        with st.expander(say("In words"), type="compact"):
            st.markdown(joined(" ", filter(None, said)))


def beside(*draw: Callable[[], object], widths: Sequence[int] = (), gap: Literal["medium", "large"] = "large") -> None:
    """Draw things beside each other, in columns of such widths relative to each other; alike if not given."""
    for column, one in zip(st.columns(widths or len(draw), gap=gap), draw, strict=True):
        with column:
            one()


def codes(*labelled: tuple[str, str]) -> None:
    """Draw lines of Python beside each other, each under its label."""

    def one(label: str, code: str) -> None:
        st.caption(label)
        st.code(code, language="python")

    beside(*(partial(one, *pair) for pair in labelled), gap="medium")


def origin(key: str, title: str, *, of_sentence: bool = True) -> Origin:
    """What a chart or a table is of, for its files: the sentence or the model alone. Its key begins with its slot."""
    slot = SECOND if key.startswith(SECOND) else MAIN
    stands = session.standing(slot)
    query = stands.last_query if of_sentence else None
    name = str(st.session_state.get(f"{slot}{session.MODEL}") or st.session_state.get(session.MODEL) or "")
    of = Origin(checkpoint=name, chart=here(title))
    if query is None:
        return of
    return replace(of, sentence=query.source, decoding=decoding_of(query), rows=here(stands.last_rows))


def csv_button(
    table: pd.DataFrame | Table, *, key: str, title: str, of_sentence: bool = True, of: Origin | None = None
) -> None:
    """Draw the download button under a table.

    `table` may also be a function that makes the columns on download, which saves time at every step. A session keeps
    it: it must not hold a run. `of` is what the table is of, if neither the current sentence nor the model alone.
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
    """A column of buttons; each calls `take`, which must not hold a run, with its item of `opens`."""
    order = tuple(opens)

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None and int(click["row"]) < len(order):
            take(order[int(click["row"])])

    return st.column_config.ButtonColumn(here(heading), pinned=True, on_click=go, key=key, **look)


def table_behind(make: Table, of: Origin, *, key: str) -> str:
    """Draw a hidden button that the CSV button of our chart clicks; returns its CSS selector.

    The browser's values may be rounded or incomplete; this writes the whole table, on download. A session keeps `make`:
    it must not hold a run.
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
    on_click: Callable[[Click], object] | None = None,
    table: Table | None = None,
    of_sentence: bool = True,
    of_lesson: bool = False,
    follows: Callable[[Origin, dict[str, Any]], str] | None = None,
    step: int | None = None,
) -> None:
    """Draw a chart with the sentence that says how to read it, in the session's language.

    Nothing is sent while a step of a lesson covers it.

    Args:
        figure: The result of a `..._spec` of `charts`; its layout suggests the height.
        key: Names this place on the page.
        alt: Alternative text for screen readers, one or two sentences.
        how_to_read: One sentence.
        said: The other texts, as `glassformer.runs.picture.Captions`.
        fit: Whether the chart takes the height that is left on the first screen, as the subject of its page.
        on_click: Called with the mark that is clicked. A session keeps it: it must not hold a run.
        table: Makes the columns of the CSV file. A session keeps it: it must not hold a run. None: taken from the
            figure, or made by the browser.
        of_sentence: Whether it depends on the current sentence, and not only on the model.
        of_lesson: Whether it is next to the page, where no lesson covers it.
        follows: Given what its files are of, and what is said at the step, says how it follows the step: "server" draws
            it anew, "still" is the same at each, else where its frames are. None: the server draws each step.
        step: The step, from 0, of a run that is stepped through.
    """
    if not of_lesson and cover_box.stands_for(key, height=figure["layout"]["height"]):
        return
    of = origin(key, "", of_sentence=of_sentence)
    of, moment = at_a_moment(figure, of, key=key, alt=alt, how_to_read=how_to_read, said=said, language=current())
    if not of_lesson:
        cover_box.met(key, of.chart)
    make, least = table or figure.get("table"), figure["layout"].get("meta", {}).get("least_height", LEAST_FITTED)
    payload = moment | {
        "name": key,
        "table": table_behind(make, of, key=key) if make else "",
        "fit": least if fit else 0,
        "clickable": on_click is not None,
        "follows": "server" if follows is None else follows(of, moment),
        "step": step,
    }
    VIEW.draw(payload, key=key, hears={"click": on_click and partial(_heard, key, on_click)})


def _heard(key: str, on_click: Callable[[Click], object]) -> None:
    if (click := last_click(key)) is not None:
        on_click(click)


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


@contextmanager
def pressed(button: Callable[..., bool], label: str, *, key: str, about: str, **look: Any) -> Iterator[bool]:
    """Draw the button; the block does what it starts, and runs again if the script run was interrupted.

    `st.rerun` interrupts a run too: call it after the block. `button` is `st.button`, a container's, or
    `st.form_submit_button`, without a callback. A click counts only for the same `about`. Leave out of `about` the
    text typed next to the button: the last of it may arrive together with the click.
    """
    mark = f"pressed_{key}"
    button(label, key=key, on_click=_press, args=(mark, about), **look)
    try:
        yield st.session_state.get(mark) == about
    except Exception:
        st.session_state.pop(mark, None)
        raise
    st.session_state.pop(mark, None)


def _press(mark: str, about: str) -> None:
    st.session_state[mark] = about
