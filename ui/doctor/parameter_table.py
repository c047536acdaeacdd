"""The table of all parameters, and what the tables of this part share: a name that opens a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from ui.doctor.parameter_numbers import MOST
from ui.doctor.pictures import Known
from ui.shared import drawing, style
from ui.shared.door import here, st
from ui.state import session
from ui.state.view import MAIN, Tensors
from words import joined, say, say_n

TABLE: Final = "parameters"
OPEN: Final = "parameters_open"
CSV: Final = "parameters_csv"
MOST_WITHOUT_SCROLLING: Final = 12  # rows of a table
TABLE_HEIGHT: Final = 380
OPEN_WIDTH: Final = 300


@dataclass(frozen=True)
class Column:
    """A column of the table: its heading, how a number is written, what it is, and its width in pixels."""

    heading: str
    form: str
    meaning: str
    width: int = 76


COLUMNS: Final = {
    "mean": Column(say("Mean"), "%.3g", say("Of the finite numbers, as all that follows but the counts."), 92),
    "deviation": Column(say("Deviation"), "%.3g", say("The standard deviation of the finite numbers.")),
    "smallest": Column(say("Smallest"), "%.4g", say("The smallest number.")),
    "largest": Column(say("Largest"), "%.4g", say("The largest number.")),
    "zeros": Column(say("Zeros"), "percent", say("The share of numbers that are exactly 0."), 64),
    "nan": Column(say("NaN"), "localized", say("How many are no numbers at all."), 56),
    "infinite": Column(say("Infinite"), "localized", say("How many are plus or minus infinity."), 72),
    "singular_ratio": Column(say("σ ratio"), "%.3g", say("Largest by smallest: the condition number.")),
    "effective_rank": Column(say("Eff. rank"), "%.1f", say("How many directions the matrix uses: e to the entropy of "
                                                          "its singular values, as shares of their sum.")),
    "singular_largest": Column(say("Largest σ"), "%.3g", say("The largest singular value: the most that the matrix "
                                                            "makes a vector longer.")),
    "singular_smallest": Column(say("Smallest σ"), "%.3g", say("The smallest singular value.")),
}  # fmt: skip


def is_of(one: Known, which: Tensors) -> bool:
    """Whether a parameter is of a kind."""
    return {"all": True, "not_finite": not one.numbers.is_finite, "constant": one.numbers.is_constant}[which]


def listed(found: Sequence[Known], which: Tensors, words: str) -> list[Known]:
    """Those that are listed.

    Args:
        found: All of them.
        which: Kind of those that are.
        words: Each is in a name of theirs, in any case.
    """
    return [one for one in found if is_of(one, which) and has(words, one.parameter.name, *one.parameter.also)]


def has(words: str, *names: str) -> bool:
    """Whether each of some words is in one of the names, in any case."""
    named = " ".join(names).casefold()
    return all(word in named for word in words.casefold().split())


def frame(found: Sequence[Known]) -> pd.DataFrame:
    """One row a parameter; NaN where there is no number."""
    return pd.DataFrame([_row(one) for one in found])


def _row(one: Known) -> dict[str, Any]:
    numbers, spectrum = one.numbers, one.spectrum
    return {
        "name": numbers.name,
        "shape": shape_of(numbers.shape),
        "mean": numbers.mean,
        "deviation": numbers.deviation,
        "smallest": numbers.smallest,
        "largest": numbers.largest,
        "zeros": numbers.zero_share,
        "nan": numbers.nan,
        "infinite": numbers.infinite,
        "singular_ratio": math.nan if spectrum is None else spectrum.ratio,
        "effective_rank": math.nan if spectrum is None else spectrum.effective_rank,
        "singular_largest": math.nan if spectrum is None else spectrum.largest,
        "singular_smallest": math.nan if spectrum is None else spectrum.smallest,
        "numbers": numbers.size,
        "type": numbers.dtype,
        "also": ", ".join(numbers.also),
    }


def shape_of(shape: Sequence[int]) -> str:
    """A shape as code writes it."""
    return f"[{', '.join(map(str, shape))}]"


def draw(found: Sequence[Known], chosen: str) -> None:
    """Draw those that the view lists; `chosen` is the name of the one that is looked at."""
    view = session.view(MAIN)
    rows = listed(found, view.tensors, view.names)
    if not rows:
        st.info(say("No tensor is like that. Take fewer words, or list all."), icon=":material/info:")
        return
    numbers = frame(rows)
    left_out = {"name"} if numbers["also"].any() else {"name", "also"}
    shown = [name for name in numbers.columns if name not in left_out]
    st.container(key=TABLE).dataframe(
        numbers.assign(open=marked([one.parameter.name for one in rows], chosen))[["open", *shown]],
        hide_index=True,
        height=height_of(len(rows)),
        row_height=29,
        column_config={"open": opening(OPEN, [one.parameter.name for one in rows]), **_columns()},
        placeholder="–",
        alt=say("Every learned tensor with its shape and what numbers it holds."),
    )
    st.caption(_said(rows))
    drawing.csv_button(numbers, key=CSV, title=say("parameters"), of_sentence=False)


def bar(name: str) -> Any:
    """A row for controls, beside that of the page (`choices.bar`); `name` tells it from others."""
    return st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{name}-{style.BAR}")


def height_of(n_rows: int) -> Any:
    """The height of a table, in pixels if it scrolls."""
    return "content" if n_rows <= MOST_WITHOUT_SCROLLING else TABLE_HEIGHT


def marked(names: Sequence[str], chosen: str) -> list[str]:
    """Names, that of the tensor that is looked at with its mark."""
    return [f"● {name}" if name == chosen else name for name in names]


def opening(key: str, names: Sequence[str]) -> Any:
    """The column whose names open a tensor.

    Args:
        key: Of its buttons.
        names: Of the tensors, row by row.
    """
    order = tuple(names)

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None:
            session.replace(MAIN, tensor=order[int(click["row"])])

    return st.column_config.ButtonColumn(
        here(say("Tensor")), type="secondary", width=OPEN_WIDTH, pinned=True, alignment="left", on_click=go, key=key
    )


def _columns() -> dict[str, Any]:
    own = {
        "shape": st.column_config.TextColumn(say("Shape"), width=96),
        "numbers": st.column_config.NumberColumn(say("Numbers"), format="localized", width=90),
        "type": st.column_config.TextColumn(say("Type"), width=72),
        "also": st.column_config.TextColumn(say("Also called"), width=240),
    }
    return own | {
        name: st.column_config.NumberColumn(one.heading, format=one.form, help=one.meaning, width=one.width)
        for name, one in COLUMNS.items()
    }


def _said(rows: Sequence[Known]) -> str:
    said = [
        say_n(
            "{n:,} tensor with {numbers:,} numbers; one that two components share is listed once.",
            "{n:,} tensors with {numbers:,} numbers; one that two components share is listed once.",
            len(rows),
            numbers=sum(one.numbers.size for one in rows),
        ),
        say("Press a name to look at it; ● is the one shown below. Press a heading to sort by it."),
    ]
    large = sum(one.work > MOST for one in rows)
    if large:
        said.append(
            say_n(
                "{n} matrix is too large for its singular values here; `transformer.analysis.spectra` computes them.",
                "{n} matrices are too large for their singular values here; `transformer.analysis.spectra` computes "
                "them.",
                large,
            )
        )
    return joined(" ", said)
