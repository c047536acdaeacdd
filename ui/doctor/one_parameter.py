"""One parameter: how its numbers are spread, its singular values, its rows by piece, and how far it has moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import torch

import charts
from charts.parameters import HOW_TO_READ_ROWS, HOW_TO_READ_SINGULAR, HOW_TO_READ_SPREAD
from transformer.analysis.parameters import Histogram, Statistics, histogram
from transformer.checkpoint.load import Checkpoint
from transformer.text.tokenizer import AnyTokenizer
from ui.doctor import parameter_numbers
from ui.doctor.parameter_changes import Comparison
from ui.doctor.parameter_numbers import MOST, ONE_AT_ONCE, Known
from ui.doctor.parameter_table import bar, shape_of
from ui.runs.attempt import attempt
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.shared.pressing import pressed
from ui.state import session
from ui.state.view import MAIN
from words import joined, say, say_n

CHOICE: Final = "parameter_choice"
SPREAD: Final = "parameter_spread"
SINGULAR: Final = "parameter_singular"
DECOMPOSE: Final = "parameter_decompose"
ROWS: Final = "parameter_rows"
LENGTHS: Final = "parameter_lengths"
CHANGE: Final = "parameter_change"
N_ROWS: Final = 10  # shortest, and longest
SOURCE_TABLE: Final = "src_table"
TARGET_TABLES: Final = ("tgt_table", "output_table")


def draw(checkpoint: Checkpoint, one: Known, comparison: Comparison | None, names: Sequence[str]) -> None:
    """Draw the parameter that is looked at.

    Args:
        checkpoint: Whose.
        one: What is known of it.
        comparison: What the checkpoint is compared with, if anything.
        names: Of all parameters, to choose from.
    """
    name = one.parameter.name
    st.subheader(f"**{drawing.plain(name)}**")  # data: its words are no terms
    with bar("one_parameter"):
        choices.menu(
            choices.field(MAIN, "tensor", key=CHOICE), say("Tensor"), {n: n for n in names}, otherwise=name,
            bare=True, width=420,
        )  # fmt: skip
        choices.switch(choices.field(MAIN, "log_counts"), say("Logarithmic counts"))
    st.caption(drawing.plain(about(one.numbers)))
    _left_out(one.numbers.nan, one.numbers.infinite)
    drawing.beside(lambda: _spread(checkpoint, one), lambda: _singular(checkpoint, one))
    pieces = tokenizer_of(checkpoint, (name, *one.parameter.also))
    if pieces is not None:
        _rows(checkpoint, one, pieces)
    if comparison is not None:
        _change(checkpoint, comparison, name)


def about(numbers: Statistics) -> str:
    """What a parameter is, in a sentence or two."""
    said = [
        say_n(
            "Shape {shape}, {n:,} number of type {type}.",
            "Shape {shape}, {n:,} numbers of type {type}.",
            numbers.size,
            shape=shape_of(numbers.shape),
            type=numbers.dtype,
        )
    ]
    if numbers.also:
        said.append(say("Also called {names}.", names=", ".join(numbers.also)))
    if numbers.is_constant:
        said.append(say("All of them are {value:.6g}.", value=numbers.smallest))
    return joined(" ", said)


def tokenizer_of(checkpoint: Checkpoint, names: Sequence[str]) -> AnyTokenizer | None:
    """The tokenizer whose pieces are the rows of a parameter; None for one whose rows are something else.

    Args:
        checkpoint: Whose.
        names: All names of the parameter.
    """
    if SOURCE_TABLE in names:
        return checkpoint.src_tokenizer
    return checkpoint.tgt_tokenizer if any(name in TARGET_TABLES for name in names) else None


def ends_of(lengths: np.ndarray, count: int) -> np.ndarray:
    """The places of the shortest and of the longest, rising; all of them where there are no more.

    Args:
        lengths: Of rows; those that are not finite are left out.
        count: How many of each.
    """
    order = np.argsort(lengths, kind="stable")
    order = order[np.isfinite(lengths[order])]
    return order if len(order) <= 2 * count else np.concatenate([order[:count], order[-count:]])


def _left_out(nan: int, infinite: int) -> None:
    if nan or infinite:
        said = say(
            "Left out of what follows, as they are not finite: NaN {nan:,} times, infinity {infinite:,} times.",
            nan=nan,
            infinite=infinite,
        )
        st.warning(said, icon=":material/warning:")


def _spread(checkpoint: Checkpoint, one: Known) -> None:
    found = attempt(lambda: parameter_numbers.spread(checkpoint, one.parameter))
    if found is not None:
        name = one.parameter.name
        _histogram(found, key=SPREAD, title=say("Numbers of {name}", name=name), value_name=say("Value"))


def _histogram(
    found: Histogram,
    *,
    key: str,
    title: str,
    value_name: str,
    counted: str = say("Numbers"),
    read: str = HOW_TO_READ_SPREAD,
) -> None:
    if not len(found.counts):
        st.info(say("There is no finite number to draw."), icon=":material/info:")
        return
    drawing.chart(
        charts.number_spread_spec(
            found.edges,
            found.counts,
            title=title,
            value_name=value_name,
            counted=counted,
            log_counts=session.view(MAIN).log_counts,
        ),
        key=key,
        alt=say(
            "{title}: {n:,} of them, from {low:.4g} to {high:.4g}, most often from {first:.4g} to {last:.4g}.",
            title=title,
            n=int(found.counts.sum()),
            low=found.edges[0],
            high=found.edges[-1],
            first=found.edges[found.counts.argmax()],
            last=found.edges[found.counts.argmax() + 1],
        ),
        how_to_read=read,
        of_sentence=False,
    )


# ------------------------------------------------------------------------------------------------ singular values


def _singular(checkpoint: Checkpoint, one: Known) -> None:
    if len(one.numbers.shape) != 2:
        st.info(say("Only a matrix has singular values; this tensor is none."), icon=":material/info:")
        return
    if not one.numbers.is_finite:
        st.info(say("A matrix with numbers that are not finite has no singular values."), icon=":material/info:")
        return
    decomposed = one if one.spectrum is not None else _decomposed(checkpoint, one)
    if decomposed is None or decomposed.spectrum is None:
        return
    found = decomposed.spectrum
    drawing.chart(
        charts.singular_values_spec(
            found.values,
            effective_rank=found.effective_rank,
            title=say("Singular values of {name}", name=one.parameter.name),
        ),
        key=SINGULAR,
        alt=say(
            "{n} singular values from {largest:.4g} down to {smallest:.4g}; the effective rank is {rank:.1f}.",
            n=len(found.values),
            largest=found.largest,
            smallest=found.smallest,
            rank=found.effective_rank,
        ),
        how_to_read=HOW_TO_READ_SINGULAR,
        of_sentence=False,
    )


def _decomposed(checkpoint: Checkpoint, one: Known) -> Known | None:
    """The parameter with its singular values, if they are cheap or the reader asks for them."""
    if one.work > MOST:
        said = say(
            "This matrix is too large for its singular values here: they would take about {seconds:,} s, and "
            "everybody would wait. `transformer.analysis.spectra.spectrum` computes them.",
            seconds=one.seconds,
        )
        st.info(said, icon=":material/info:")
        return None
    label = say("Singular values of this matrix, about {seconds} s", seconds=one.seconds)
    work = partial(parameter_numbers.with_spectrum, checkpoint, one)
    if one.work <= ONE_AT_ONCE:
        return attempt(work)
    place, about = st.empty(), f"{checkpoint.content_hash} {one.parameter.name}"
    with pressed(place.button, label, key=DECOMPOSE, about=about, icon=":material/calculate:") as asked:
        if not asked:
            return None
        place.empty()
        return attempt(work)


# ------------------------------------------------------------------------------------------------ rows of pieces


def _rows(checkpoint: Checkpoint, one: Known, pieces: AnyTokenizer) -> None:
    lengths = attempt(lambda: parameter_numbers.row_lengths(checkpoint, one.parameter))
    if lengths is None or not np.isfinite(lengths).any():
        return
    drawing.beside(partial(_extremes, one, lengths, pieces), partial(_lengths, one, lengths))


def _extremes(one: Known, lengths: np.ndarray, pieces: AnyTokenizer) -> None:
    shown = ends_of(lengths, N_ROWS).tolist()
    names = [pieces.piece(i) for i in shown]
    title = say("Shortest and longest rows of {name}", name=one.parameter.name)
    drawing.chart(
        charts.row_lengths_spec(
            names, shown, lengths[shown].tolist(), special=[pieces.is_special(i) for i in shown], title=title
        ),
        key=ROWS,
        alt=say(
            "The shortest row is that of {short}, {least:.4g}; the longest that of {long}, {most:.4g}.",
            short=names[0],
            least=lengths[shown[0]],
            long=names[-1],
            most=lengths[shown[-1]],
        ),
        how_to_read=HOW_TO_READ_ROWS,
        of_sentence=False,
    )


def _lengths(one: Known, lengths: np.ndarray) -> None:
    _histogram(
        histogram(torch.from_numpy(lengths)),
        key=LENGTHS,
        title=say("Lengths of the rows of {name}", name=one.parameter.name),
        value_name=say("Length of the row"),
        counted=say("Rows"),
        read=say("Each bar is how many rows of the table have a length in one interval."),
    )


# ------------------------------------------------------------------------------------------------ the difference


def _change(checkpoint: Checkpoint, comparison: Comparison, name: str) -> None:
    if name not in comparison.pairs:
        st.info(say("The other checkpoint has no tensor of this name and shape."), icon=":material/info:")
        return
    a, b = comparison.pairs[name]
    found = attempt(lambda: parameter_numbers.spread_of_difference(checkpoint, comparison.other, a, b))
    if found is None:
        return
    other = comparison.other.name
    title = say("Change of {name}: {other} less {this}", name=name, other=other, this=checkpoint.name)
    _histogram(found, key=CHANGE, title=title, value_name=say("Difference"))
