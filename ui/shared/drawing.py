"""What pages share of drawing: notes, charts with their sentence, things beside each other, tables to save."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import pandas as pd

from charts.theme import Spec
from ui.components.plotly.view import plotly_view
from ui.shared.door import here, st
from words import joined, say, through

_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")
# Escapes do not keep Streamlit from making links, arrows and pictures of plain text such as "www.", "a@b.c", "->"
# and ":streamlit:". A word joiner inside, which nobody sees, does.
_REWRITTEN = re.compile(r"(?<=[-<>~])(?=[->=])|(?=@)|(?<=:)(?=[/a-z])|(?<=www)(?=\.)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


@through
def plain(text: str) -> str:
    """Text as Streamlit's Markdown shows it letter by letter; a sentence stays one.

    Every ASCII punctuation mark is escaped, which Markdown allows; a line break would start a new paragraph.
    """
    return _MARKUP.sub(r"\\\1", _REWRITTEN.sub(_WORD_JOINER, " ".join(text.split())))


def notes(sentences: Sequence[str]) -> None:
    """Say what a reader should know, one line each."""
    if sentences:
        st.info(joined("  \n", map(plain, sentences)), icon=":material/info:")


@through
def formula(text: str, *, bias: bool) -> str:
    """A sentence with a formula, as it holds for a model that has biases or none."""
    return text if bias else text.replace(" + b", "")


def beside(
    *draw: Callable[[], object], widths: Sequence[int] = (), gap: Literal["medium", "large"] = "large"
) -> None:
    """Draw things beside each other.

    Args:
        draw: What draws each.
        widths: Of the columns, relative to each other; alike if not given.
        gap: Between them.
    """
    for column, one in zip(st.columns(widths or len(draw), gap=gap), draw, strict=True):
        with column:
            one()


def csv_button(table: pd.DataFrame, *, key: str, file_name: str, digits: int = 6) -> None:
    """Draw the button under a table that saves its numbers.

    Args:
        table: What is saved.
        key: Of the button.
        file_name: What the file is called.
        digits: Significant digits of a number.
    """
    st.download_button(
        say("Table as CSV"),
        table.to_csv(index=False, float_format=f"%.{digits}g"),
        file_name=file_name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        icon=":material/download:",
    )


def chart(figure: Spec, *, key: str, alt: str, how_to_read: str, on_click: Callable[[], None] | None = None) -> None:
    """Draw a chart with the sentence that says how to read it, in the session's language.

    Args:
        figure: What a `..._spec` of `charts` made; its layout suggests the height.
        key: Names this place on the page.
        alt: The chart in one or two sentences, for people who cannot see it.
        how_to_read: One sentence.
        on_click: Called when a mark is clicked.
    """
    height = figure["layout"]["height"]
    plotly_view(here(figure), key=key, alt=here(alt), height=height, caption=here(how_to_read), on_click=on_click)
