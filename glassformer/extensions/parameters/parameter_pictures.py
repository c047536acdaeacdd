"""Pictures of one parameter (histogram, singular values, row lengths, change), and its cached statistics."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch

from glassformer.charts import theme
from glassformer.charts.grammar import at_a_line, stroke, upright
from glassformer.charts.histograms import HEIGHT, HOW_TO_READ_SPREAD, number_spread_spec
from glassformer.charts.hover import bold
from glassformer.charts.marks import LOGARITHMIC, Axis, Numbers, Places, Scale, Series, bars, lines
from glassformer.charts.theme import Spec, capitalised, literal
from glassformer.extensions.doctor.doctor_page import DOCTOR
from glassformer.extensions.parameters.parameters_part import ParametersLook
from glassformer.runs.picture import Picture, Plot
from glassformer.runs.viewed_run import ModelAccess, ViewedRun
from glassformer.state.view import MAIN, Slot
from transformer.analysis import neighbours, parameters
from transformer.analysis.parameters import Histogram, Parameter, Spectrum, Statistics, histogram, measured, work_of
from transformer.analysis.parameters import parameters as parameters_of
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say, say_n
from transformer.model.module import widened
from transformer.text.tokenizer import AnyTokenizer

ONE_AT_ONCE: Final = 5e9  # work for the singular values of the selected matrix, unrequested: 1 s
ROWS_AT_ONCE: Final = 4096
N_ROWS: Final = 10  # shortest, and longest
_SMALL: Final = 1000  # bytes of a cached result
_AT_TOP: Final[Spec] = {"font": {"color": theme.MARK_COLOR}, "yanchor": "top"}
_AROUND: Final = 1.15  # room below the smallest and above the largest singular value, as a factor
HOW_TO_READ_SINGULAR: Final = say(
    "A singular value is the factor by which the matrix stretches or shrinks vectors in one of its directions. "
    "After a steep drop, the directions are hardly used. The dotted line is the effective rank: how many equally "
    "used directions these values correspond to."
)
HOW_TO_READ_ROWS: Final = say(
    "Each bar is the length of one token's vector, a row of the table. The shortest is at the top, the longest at "
    "the bottom. Rows of tokens that never occurred in training often all have the same length, or lengths far "
    "from those of other rows."
)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a parameter."""

    parameter: Parameter  # the tensor
    numbers: Statistics  # what numbers it holds
    spectrum: Spectrum | None  # its singular values; None if it has none, or they have not been computed

    @property
    def work(self) -> int:
        """What its singular values would cost; 0 if it has none, or they are known."""
        there = self.numbers.is_finite and self.spectrum is None
        return work_of(self.numbers.shape) if there else 0


def statistics(work: ModelAccess, checkpoint: Checkpoint, parameter: Parameter) -> Statistics:
    """What numbers a parameter holds; may raise `BusyError`, as all that follows."""
    key = ("statistics", checkpoint.content_hash, parameter.name)
    return work.compute(key, lambda: measured(parameter), nbytes=lambda _: _SMALL)


def with_spectrum(work: ModelAccess, checkpoint: Checkpoint, one: Known) -> Known:
    """The same with its singular values, which it has."""
    found = work.compute(
        spectrum_key(checkpoint, one.parameter),
        lambda: parameters.spectrum(one.parameter.values),
        nbytes=lambda made: 0 if made is None else made.values.nbytes,
    )
    return Known(one.parameter, one.numbers, found)


def spectrum_key(checkpoint: Checkpoint, parameter: Parameter) -> Hashable:
    """By what its singular values are kept."""
    return "spectrum", checkpoint.content_hash, parameter.name


# ------------------------------------------------------------------------------------------------ what is looked at


@dataclass(frozen=True, eq=False)
class OneParameter:
    """A parameter, and its counterpart in the other checkpoint."""

    checkpoint: Checkpoint  # whose
    one: Known
    log_counts: bool  # whether counts are drawn by their logarithm
    work: ModelAccess
    other: Checkpoint | None = None
    pair: tuple[Parameter, Parameter] | None = None  # the parameter and the other's, if that has it
    slot: Slot = MAIN

    @property
    def name(self) -> str:
        """Of the parameter."""
        return self.one.parameter.name

    @property
    def pieces(self) -> AnyTokenizer | None:
        """The tokenizer whose pieces are its rows; None for one whose rows are something else."""
        names = {self.name, *self.one.parameter.also}
        if "src_table" in names:
            return self.checkpoint.src_tokenizer
        return self.checkpoint.tgt_tokenizer if names & {"tgt_table", "output_table"} else None

    @cached_property
    def spread(self) -> Histogram:
        """How its numbers are spread."""
        key, values = ("spread", self.checkpoint.content_hash, self.name), self.one.parameter.values
        return self.work.compute(key, lambda: histogram(values), nbytes=lambda _: _SMALL)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row of a table, float64 [row]."""

        def made() -> np.ndarray:
            some = self.one.parameter.values.split(ROWS_AT_ONCE)  # in 16 bits it is not made 32 bits wide as a whole
            return np.concatenate([neighbours.row_norms(widened(rows).numpy(force=True)) for rows in some])

        key = ("row_lengths", self.checkpoint.content_hash, self.name)
        return self.work.compute(key, made, nbytes=lambda lengths: lengths.nbytes)

    @cached_property
    def has_rows(self) -> bool:
        """Whether its rows are pieces, and have lengths."""
        return self.pieces is not None and bool(np.isfinite(self.lengths).any())

    @cached_property
    def moved(self) -> Histogram | None:
        """How the differences from the other's numbers are spread, theirs less these."""
        if self.other is None or self.pair is None:
            return None
        key = ("spread_of_difference", self.checkpoint.content_hash, self.other.content_hash, self.name)
        a, b = (one.values for one in self.pair)
        return self.work.compute(key, lambda: histogram(b, minus=a), nbytes=lambda _: _SMALL)


def scene(run: ViewedRun) -> OneParameter:
    """The parameter that the view names, or the first."""
    tensors = parameters_of(run.checkpoint.model)
    parameter = next(
        (one for one in tensors if run.view.of(ParametersLook).tensor in (one.name, *one.also)), tensors[0]
    )
    one = Known(parameter, statistics(run.work, run.checkpoint, parameter), None)
    if 0 < one.work <= ONE_AT_ONCE:
        one = with_spectrum(run.work, run.checkpoint, one)
    return OneParameter(run.checkpoint, one, run.view.of(ParametersLook).log_counts, run.work)


PARAMETERS = DOCTOR.part("parameters", scene)


# ------------------------------------------------------------------------------------------------ pictures


@PARAMETERS.picture("parameter_spread", say("The numbers of a parameter"), follows="still")
def spread(scene: OneParameter) -> Plot | None:
    """How its numbers are spread."""
    return _histogram(scene, scene.spread, title=say("Numbers of {name}", name=scene.name), value_name=say("Value"))


@PARAMETERS.picture("parameter_singular", say("The singular values of a parameter"), follows="still")
def singular(scene: OneParameter) -> Plot | None:
    """Its singular values, if it has any and they are known."""
    found = scene.one.spectrum
    if found is None:
        return None
    there, n = found.values[found.values > 0], len(found.values)
    index = say("{n} of {all}", n="%{x}", all=n)
    drawn = lines(
        say("Singular values of {name}", name=scene.name),
        Places(
            say("Index of the singular value"),
            np.arange(1, len(there) + 1),
            index,
            {"nticks": 8, "rangemode": "tozero"},
        ),
        Scale(say("Singular value (log)"), LOGARITHMIC | decades_of(there)),
        [Series(say("singular value"), there, stroke(theme.NEUTRAL_COLOR, 2, size=6))],
        height=HEIGHT,
        note="" if len(there) == n else say_n("{n} singular value is 0", "{n} singular values are 0", n - len(there)),
    )
    if not math.isnan(rank := found.effective_rank):
        name = at_a_line(rank, 1, literal(say("effective rank {rank:.1f}", rank=rank)), left=2 * rank > n)
        marks = {"shapes": [upright(rank, width=1.5, below=False)], "annotations": [name | _AT_TOP]}
        drawn["spec"]["layout"] |= marks
    alt = say(
        "{n} singular values from {largest:.4g} down to {smallest:.4g}; the effective rank is {rank:.1f}.",
        n=len(found.values),
        largest=found.largest,
        smallest=found.smallest,
        rank=found.effective_rank,
    )
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_SINGULAR, of_sentence=False)


def decades_of(falling: np.ndarray) -> Spec:
    """The range of a logarithmic axis of these numbers, above 0, and labels that do not overlap."""
    if not len(falling):
        return {}
    low, high = math.log10(falling[-1] / _AROUND), math.log10(falling[0] * _AROUND)
    if high - low >= 2:
        return {"range": [low, high], "dtick": math.ceil((high - low) / 8)}
    at = [float(f"{one:.3g}") for one in np.logspace(low, high, 9)[1::2]]
    return {"range": [low, high], "tickmode": "array", "tickvals": at, "ticktext": [f"{one:g}" for one in at]}


@PARAMETERS.picture(
    "parameter_rows", say("The shortest and longest rows of a table with one row per token"), follows="still"
)
def rows(scene: OneParameter) -> Plot | None:
    """The pieces of the shortest rows and of the longest."""
    pieces, lengths = scene.pieces, scene.lengths if scene.has_rows else None
    if pieces is None or lengths is None:
        return None
    shown = _ends_of(lengths, N_ROWS).tolist()
    names, special = [pieces.piece(i) for i in shown], [pieces.is_special(i) for i in shown]
    says = [
        say("{piece}, a special token", piece=bold(name)) if one else bold(name)
        for name, one in zip(names, special, strict=True)
    ]
    drawn = bars(
        say("Shortest and longest rows of {name}", name=scene.name),
        Axis(say("Token"), names, says=says),
        Numbers(say("length of the row"), lengths[shown], ".5g"),
        Numbers(say("id"), np.array(shown), ".0f"),
        ends=lambda i: f"{lengths[shown[i]]:.3g}",
    )
    for trace in drawn["spec"]["data"]:
        trace["marker"] = {"color": [theme.SCALES["neutral"][1][1] if one else theme.NEUTRAL_COLOR for one in special]}
    alt = say(
        "The shortest row is {short}, with length {least:.4g}; the longest is {long}, with length {most:.4g}.",
        short=names[0],
        least=lengths[shown[0]],
        long=names[-1],
        most=lengths[shown[-1]],
    )
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_ROWS, of_sentence=False)


def _ends_of(lengths: np.ndarray, count: int) -> np.ndarray:
    """Indices of the shortest and longest finite lengths, ascending; all of them if there are no more."""
    order = np.argsort(lengths, kind="stable")
    order = order[np.isfinite(lengths[order])]
    return order if len(order) <= 2 * count else np.concatenate([order[:count], order[-count:]])


@PARAMETERS.picture("parameter_lengths", say("Row lengths of a table with one row per token"), follows="still")
def row_lengths(scene: OneParameter) -> Plot | None:
    """How the lengths of its rows are spread."""
    if not scene.has_rows:
        return None
    return _histogram(
        scene,
        histogram(torch.from_numpy(scene.lengths)),
        title=say("Lengths of the rows of {name}", name=scene.name),
        value_name=capitalised(say("length of the row")),
        counted=say("Rows"),
        how_to_read=say("Each bar counts the rows whose length falls in one interval."),
    )


def _change(scene: OneParameter) -> Plot | None:
    """The distance of its numbers from the other checkpoint's."""
    if scene.moved is None or scene.other is None:
        return None
    this, other = scene.checkpoint.name, scene.other.name
    title = say("Change in {name}: {other} minus {this}", name=scene.name, other=other, this=this)
    return _histogram(scene, scene.moved, title=title, value_name=say("Difference"))


change = Picture(PARAMETERS, "parameter_change", say("How much a parameter has changed"), _change)
"""Declared for its page alone: a run names no other checkpoint."""


def _histogram(
    scene: OneParameter,
    found: Histogram,
    *,
    title: str,
    value_name: str,
    counted: str = say("Numbers"),
    how_to_read: str = HOW_TO_READ_SPREAD,
) -> Plot | None:
    if not len(found.counts):
        return None
    most = found.counts.argmax()
    spec = number_spread_spec(
        found.edges, found.counts, title=title, value_name=value_name, counted=counted, log_counts=scene.log_counts
    )
    alt = say(
        "{title}: {n:,} values in total, from {low:.4g} to {high:.4g}; those from {first:.4g} to {last:.4g} "
        "are the most frequent.",
        title=title,
        n=int(found.counts.sum()),
        low=found.edges[0],
        high=found.edges[-1],
        first=found.edges[most],
        last=found.edges[most + 1],
    )
    return Plot(spec=spec, alt=alt, how_to_read=how_to_read, of_sentence=False)
