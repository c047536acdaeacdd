"""Tables of all tensors: statistics with progress bar, filters, CSV; differences from another checkpoint.

All is computed in the model's thread, once for all users, one tensor at a time. A user who steps through a sentence
meanwhile waits for one tensor only.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, TypeVar

import pandas as pd

from glassformer.extensions.parameters import differences
from glassformer.extensions.parameters.differences import Difference, Paired
from glassformer.extensions.parameters.parameter_pictures import Known, spectrum_key, statistics, with_spectrum
from glassformer.extensions.parameters.parameters_part import ParametersLook, Tensors
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.shared import controls, drawing, page_style
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.analysis.costs import stand_ins
from transformer.analysis.parameters import Parameter, Spectrum
from transformer.analysis.parameters import parameters as parameters_of
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, paragraph, say, say_n

PATIENCE_SECONDS: Final = 0.3  # before a bar is drawn
DRAW_AGAIN_SECONDS: Final = 0.2
SPEED: Final = 5e9  # multiplications a second, about
AT_ONCE: Final = 2e10
"""Work for singular values that nobody has to ask for, 4 s: that of all matrices of a small model."""
MOST: Final = 5e10
"""Work for one matrix, 10 s: everybody waits for the model meanwhile."""
READING: Final = say("Reading the parameters")
DECOMPOSING: Final = say("Computing singular values")

_Result = TypeVar("_Result")


def known(checkpoint: Checkpoint) -> dict[str, Known]:
    """What is known of each parameter but stand-ins for missing parts, with the singular values of a small model.

    By name, in the order of the model. A slow computation shows a progress bar. Raises `BusyError`: the model's queue
    is full.
    """
    tensors = [one for one in parameters_of(checkpoint.model) if one.name not in stand_ins(checkpoint.model)]
    numbers = _one_by_one([partial(statistics, loading, checkpoint, one) for one in tensors], READING)
    kept: list[Spectrum | None] = [loading.runner().kept(spectrum_key(checkpoint, one)) for one in tensors]
    found = {one.name: Known(one, of_it, spectrum) for one, of_it, spectrum in zip(tensors, numbers, kept, strict=True)}
    small = sum(one.work for one in found.values()) <= AT_ONCE
    return with_spectra(checkpoint, found, READING) if small else found


def with_spectra(checkpoint: Checkpoint, found: Mapping[str, Known], said: str = DECOMPOSING) -> dict[str, Known]:
    """Add the singular values of every matrix that is small enough. Raises `BusyError`: the model's queue is full."""
    missing = sorted((one for one in found.values() if 0 < one.work <= MOST), key=lambda one: one.work)
    costs = [float(one.work) for one in missing]
    patience = 0.0 if sum(costs) > AT_ONCE else PATIENCE_SECONDS
    work = [partial(with_spectrum, loading, checkpoint, one) for one in missing]
    return {**found} | {one.parameter.name: one for one in _one_by_one(work, said, costs=costs, patience=patience)}


def _one_by_one(
    work: Sequence[Callable[[], _Result]], said: str, *, costs: Sequence[float] = (), patience: float = PATIENCE_SECONDS
) -> list[_Result]:
    """Do some work in parts, with a progress bar that says `said` after `patience` seconds.

    The costs of the parts are in any unit; equal by default.
    """
    costs, done, results = costs or [1.0] * len(work), 0.0, []
    place, due = st.empty(), time.monotonic() + patience
    for one, cost in zip(work, costs, strict=True):
        if time.monotonic() >= due:
            due = time.monotonic() + DRAW_AGAIN_SECONDS
            place.progress(min(1.0, done / sum(costs)), said)
        results.append(one())
        done += cost
    place.empty()
    return results


# ------------------------------------------------------------------------------------------------ every tensor


TABLE: Final = "parameters"
OPEN: Final = "parameters_open"
CSV: Final = "parameters_csv"
MOST_WITHOUT_SCROLLING: Final = 12  # rows of a table
TABLE_HEIGHT: Final = 380
OPEN_WIDTH: Final = 300
NO_MATCH: Final = say("No tensor matches. Type fewer words, or list all tensors.")


@dataclass(frozen=True)
class TableColumn:
    """A column of numbers."""

    heading: str
    form: str
    meaning: str | None = None
    width: int | None = 76  # pixels


COLUMNS: Final = {
    "mean": TableColumn(
        say("Mean"),
        "%.3g",
        say(
            "The mean of the finite numbers. The columns after this one, except the counts, also use only the "
            "finite numbers."
        ),
        92,
    ),
    "deviation": TableColumn(say("Deviation"), "%.3g", say("The standard deviation of the finite numbers.")),
    "smallest": TableColumn(say("Smallest"), "%.4g"),
    "largest": TableColumn(say("Largest"), "%.4g"),
    "zeros": TableColumn(say("Zeros"), "percent", say("The share of numbers that are exactly 0."), 64),
    "nan": TableColumn(say("NaN"), "localized", width=56),
    "infinite": TableColumn(say("Infinite"), "localized", width=72),
    "singular_ratio": TableColumn(
        say("σ ratio"), "%.3g", say("The largest singular value divided by the smallest, called the condition number.")
    ),
    "effective_rank": TableColumn(
        say("Eff. rank"),
        "%.1f",
        say(
            "How many directions the matrix uses: e to the power of the entropy of the singular values, each "
            "divided by their sum."
        ),
    ),
    "singular_largest": TableColumn(
        say("Largest σ"),
        "%.3g",
        say("The largest singular value: the largest factor by which the matrix can stretch a vector."),
    ),
    "singular_smallest": TableColumn(say("Smallest σ"), "%.3g"),
    "numbers": TableColumn(say("Numbers"), "localized", width=90),
}


def is_of(one: Known, which: Tensors) -> bool:
    """Whether a parameter is of a kind."""
    return {"all": True, "not_finite": not one.numbers.is_finite, "constant": one.numbers.is_constant}[which]


def _has(words: str, *names: str) -> bool:
    """Whether each of some words is in one of the names, in any case."""
    named = " ".join(names).casefold()
    return all(word in named for word in words.casefold().split())


def _row(one: Known) -> dict[str, Any]:
    """Of a parameter; NaN where there is no number."""
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


def draw_all(found: Mapping[str, Known], chosen: str) -> None:
    """Draw the tensors that the view lists; `chosen` is the name of the selected one."""
    look = session.view(MAIN).of(ParametersLook)
    rows = [
        one for name, one in found.items() if is_of(one, look.tensors) and _has(look.names, name, *one.parameter.also)
    ]
    if not rows:
        st.info(NO_MATCH, icon=":material/info:")
        return
    numbers = pd.DataFrame([_row(one) for one in rows])
    left_out = {"name"} if numbers["also"].any() else {"name", "also"}
    shown = [name for name in numbers.columns if name not in left_out]
    alt = say("Every learned tensor with its shape and a summary of its numbers.")
    text = st.column_config.TextColumn
    texts = {
        "shape": text(say("Shape"), width=96),
        "type": text(say("Type"), width=72),
        "also": text(say("Also called"), width=240),
    }
    _table(numbers, shown, texts | _numbers(COLUMNS), keys=(TABLE, OPEN), chosen=chosen, alt=alt)
    st.caption(_said(rows))
    drawing.csv_button(numbers, key=CSV, title=say("parameters"), of_sentence=False)


def bar(name: str) -> Any:
    """A row for controls, separate from the page's (`choices.bar`); `name` identifies it."""
    return st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{name}-{page_style.BAR}")


def _table(
    numbers: pd.DataFrame, columns: Sequence[str], look: dict[str, Any], *, keys: tuple[str, str], chosen: str, alt: str
) -> None:
    """Draw a table of tensors that open by name; `chosen` is marked. The keys are its own and its buttons'."""
    names = list(numbers["name"])
    opening = drawing.opening(
        keys[1], say("Tensor"), names, lambda name: session.replace(MAIN, tensor=name), type="secondary",
        width=OPEN_WIDTH, alignment="left",
    )  # fmt: skip
    st.container(key=keys[0]).dataframe(
        numbers.assign(open=[f"● {name}" if name == chosen else name for name in names])[["open", *columns]],
        hide_index=True,
        height="content" if len(names) <= MOST_WITHOUT_SCROLLING else TABLE_HEIGHT,
        row_height=29,
        column_config={"open": opening, **look},
        placeholder="–",
        alt=alt,
    )


def _numbers(columns: Mapping[str, TableColumn]) -> dict[str, Any]:
    return {
        name: st.column_config.NumberColumn(one.heading, format=one.form, help=one.meaning, width=one.width)
        for name, one in columns.items()
    }


@paragraph
def _said(rows: Sequence[Known]) -> Iterator[str]:
    yield say_n(
        "{n:,} tensor with {numbers:,} numbers; a tensor that two components share is listed once.",
        "{n:,} tensors with {numbers:,} numbers; a tensor that two components share is listed once.",
        len(rows),
        numbers=sum(one.numbers.size for one in rows),
    )
    yield say(
        "Click a name to open that tensor; ● marks the one shown below. Click a column heading to sort the table."
    )
    large = sum(one.work > MOST for one in rows)
    if large:
        yield too_large(large)


def too_large(n: int) -> str:
    """Why some matrices have no singular values."""
    return say_n(
        "{n} matrix is too large for this page to compute its singular values; use "
        "`transformer.analysis.parameters` in Python.",
        "{n} matrices are too large for this page to compute their singular values; use "
        "`transformer.analysis.parameters` in Python.",
        n,
    )


def may_compute(*matrices: Known) -> str:
    """The label of a button that computes the singular values of some matrices."""
    return say_n(
        "Compute the singular values of {n} matrix (about {seconds} s)",
        "Compute the singular values of {n} matrices (about {seconds} s)",
        len(matrices),
        seconds=max(1, round(sum(one.work for one in matrices) / SPEED)),
    )


# ------------------------------------------------------------------------------------------------ what another has


CHANGES: Final = "differences"
OPEN_CHANGE: Final = "differences_open"
CHANGES_CSV: Final = "differences_csv"
MOST_NAMED: Final = 5
COMPARING: Final = say("Comparing the parameters")
CHANGE_COLUMNS: Final = {
    "largest": TableColumn(
        say("Largest change"),
        "%.4g",
        say(
            "The largest |b − a|, where a is a number in this checkpoint and b is the corresponding number in the "
            "other."
        ),
        None,
    ),
    "mean": TableColumn(
        say("Mean change"),
        "%.4g",
        say(
            "The mean of |b − a|, where a is a number in this checkpoint and b is the corresponding number in the "
            "other."
        ),
        None,
    ),
    "relative": TableColumn(
        say("Relative"),
        "%.4g",
        say(
            "‖b − a‖ / ‖a‖, where a is the tensor in this checkpoint and b is the one in the other: 0 if nothing "
            "changed, about 1.4 if they are unrelated."
        ),
        None,
    ),
    "cosine": TableColumn(
        say("Cosine"),
        "%.4g",
        say("Cosine of the angle between the two tensors: 1 for the same direction, about 0 if they are unrelated."),
        None,
    ),
    "left_out": TableColumn(
        say("Left out"),
        "localized",
        say("How many entries are left out because they are NaN or infinite in at least one of the two tensors."),
        None,
    ),
}


Pairs = dict[str, tuple[Parameter, Parameter]]
"""The tensors of two checkpoints that go together, by the name of the first."""


def choose_other(checkpoint: Checkpoint) -> Checkpoint | None:
    """Draw the choice of another checkpoint; returns it, opened, if one was chosen."""
    mine = st.session_state.get(session.MODEL)
    there = {name: entry for name, entry in loading.usable().items() if name != mine}
    asked = session.view(MAIN).of(ParametersLook).against
    if asked and asked not in there:
        session.replace(MAIN, against="")
        drawing.notes([say("There is no other checkpoint named “{name}”.", name=asked)])
    labels = {name: say("{title} ({name})", title=entry.title or name, name=name) for name, entry in there.items()}
    name = controls.menu(
        controls.field(MAIN, "against"), say("Compare with"), {"": say("No comparison"), **labels}, bare=True, width=260
    )
    return attempt(lambda: loading.open_checkpoint(there[name])) if name else None


def draw_changes(checkpoint: Checkpoint, other: Checkpoint, chosen: str) -> Pairs | None:
    """Draw how far each parameter is from the other checkpoint's; None if nothing can be compared."""
    both = differences.paired(parameters_of(checkpoint.model), parameters_of(other.model))
    st.subheader(say("Difference from {name}", name=drawing.plain(other.name)))
    _unmatched(both, other)
    if not both.pairs:
        return None

    def difference(a: Parameter, b: Parameter) -> Difference:
        key = ("difference", checkpoint.content_hash, other.content_hash, a.name)
        return loading.compute(key, lambda: differences.difference(a.name, a.values, b.values), nbytes=lambda _: 1000)

    found = attempt(lambda: _one_by_one([partial(difference, a, b) for a, b in both.pairs], COMPARING))
    if found is None:
        return None
    found.sort(key=lambda one: -math.inf if math.isnan(one.relative) else one.relative, reverse=True)
    _changes(found, other, chosen)
    return {one.name: (one, partner) for one, partner in both.pairs}


def _unmatched(both: Paired, other: Checkpoint) -> None:
    names = both.unmatched
    if not names:
        return
    more = len(names) - MOST_NAMED
    listed = joined(", ", [*names[:MOST_NAMED], *([say("and {n} more", n=more)] if more > 0 else [])])
    drawing.notes(
        [
            say_n(
                "{n} tensor is not listed because it is in only one of the two checkpoints or has a different "
                "shape in each: {names}.",
                "{n} tensors are not listed because they are in only one of the two checkpoints or have different "
                "shapes in them: {names}.",
                len(names),
                names=listed,
            )
        ]
    )


def _changes(compared: Sequence[Difference], other: Checkpoint, chosen: str) -> None:
    words = session.view(MAIN).of(ParametersLook).names
    found = [one for one in compared if _has(words, one.name)]
    if not found:
        st.info(NO_MATCH, icon=":material/info:")
        return
    numbers = pd.DataFrame([asdict(one) | {"shape": shape_of(one.shape)} for one in found])
    counted = any(one.left_out for one in found)
    columns = ["shape", *(name for name in CHANGE_COLUMNS if counted or name != "left_out")]
    alt = say(
        "How far each tensor is from the same tensor in {name}. The largest relative change comes first.",
        name=other.name,
    )
    look = {"shape": st.column_config.TextColumn(say("Shape"), width=110)} | _numbers(CHANGE_COLUMNS)
    _table(numbers, columns, look, keys=(CHANGES, OPEN_CHANGE), chosen=chosen, alt=alt)
    same = sum(one.largest == 0 and not one.left_out for one in found)
    said = say_n(
        "Identical: {same} of {n} tensor. The largest relative change comes first.",
        "Identical: {same} of {n} tensors. The largest relative change comes first.",
        len(found),
        same=same,
    )
    st.caption(said)
    title = say("Difference from {name}", name=other.name)
    drawing.csv_button(numbers, key=CHANGES_CSV, title=title, of_sentence=False)
