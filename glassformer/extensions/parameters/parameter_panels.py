"""Part "Parameters" of the Doctor page: filters, all tensors, one of them in detail, its singular values.

The statistics are defined in `transformer.analysis.parameters`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from glassformer.extensions.parameters import parameter_pictures, parameter_tables
from glassformer.extensions.parameters.parameter_pictures import ONE_AT_ONCE, Known, OneParameter
from glassformer.extensions.parameters.parameter_tables import MOST, Pairs, bar, is_of, may_compute, shape_of, too_large
from glassformer.extensions.parameters.parameters_part import ParametersLook, Tensors
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.picture import Picture
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.fields import LONGEST_NAME
from glassformer.state.view import MAIN
from transformer.analysis.costs import said as said_of
from transformer.analysis.costs import stand_ins
from transformer.analysis.parameters import Histogram, Statistics
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, paragraph, say, say_n

SPECTRA: Final = "parameters_spectra"
_Result = TypeVar("_Result")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the part."""
    found = attempt(lambda: parameter_tables.known(checkpoint))
    if found is None:
        return
    other = _controls(checkpoint, found)
    chosen = _chosen(found)
    found = _spectra(checkpoint, found)
    parameter_tables.draw_all(found, chosen)
    if absent := said_of(stand_ins(checkpoint.model)):
        st.caption(joined(" ", absent))
    pairs = None if other is None else parameter_tables.draw_changes(checkpoint, other, chosen)
    _one(checkpoint, found[chosen], None if pairs is None else other, pairs or {}, list(found))


def _controls(checkpoint: Checkpoint, found: Mapping[str, Known]) -> Checkpoint | None:
    odd, constant = (sum(is_of(one, which) for one in found.values()) for which in ("not_finite", "constant"))
    which: dict[Tensors, str] = {
        "all": say("All · {n}", n=len(found)),
        "not_finite": say("Not finite · {n}", n=odd),
        "constant": say("Constant · {n}", n=constant),
    }
    with parameter_tables.bar("parameters"):
        controls.typed(
            controls.field(MAIN, "names"),
            say("Words in the name"),
            most=LONGEST_NAME,
            width=220,
            help=say("Lists the tensors whose names contain all of these words, for example decoder query."),
        )
        controls.choose(controls.field(MAIN, "tensors"), say("Which are listed"), which, bare=True)
        return parameter_tables.choose_other(checkpoint)


def _chosen(found: Mapping[str, Known]) -> str:
    """The selected parameter's name; a name that does not exist is dropped with a message."""
    asked, first = session.view(MAIN).of(ParametersLook).tensor, next(iter(found))
    if asked in found:
        return asked
    if asked:
        also = next((name for name, one in found.items() if asked in one.parameter.also), None)
        session.replace(MAIN, tensor=also or "")
        if also:
            return also
        drawing.notes([say("This model has no tensor “{name}”; {shown} is shown.", name=asked, shown=first)])
    return first


# ------------------------------------------------------------------------------------------------ singular values


def _spectra(checkpoint: Checkpoint, found: dict[str, Known]) -> dict[str, Known]:
    """Offer to compute the singular values that a large model lacks."""
    missing = [one for one in found.values() if 0 < one.work <= MOST]
    if not missing:
        return found
    work = partial(parameter_tables.with_spectra, checkpoint, found)
    return _if_asked(may_compute(*missing), work, key=SPECTRA, about=checkpoint.content_hash) or found


def _if_asked(label: str, work: Callable[[], _Result], *, key: str, about: str) -> _Result | None:
    """Draw a button; return the work's result once it was clicked, None before or after an error message."""
    place = st.empty()
    with pressed(place.button, label, key=key, about=about, icon=":material/calculate:") as asked:
        if not asked:
            return None
        place.empty()
        return attempt(work)


# ------------------------------------------------------------------------------------------------ one of them


CHOICE: Final = "parameter_choice"
DECOMPOSE: Final = "parameter_decompose"


def _one(checkpoint: Checkpoint, one: Known, other: Checkpoint | None, pairs: Pairs, names: Sequence[str]) -> None:
    name = one.parameter.name
    st.subheader(f"**{drawing.plain(name)}**")  # data, without glossary terms
    with bar("one_parameter"):
        controls.menu(
            controls.field(MAIN, "tensor", key=CHOICE), say("Tensor"), {n: n for n in names}, otherwise=name,
            bare=True, width=420,
        )  # fmt: skip
        controls.switch(controls.field(MAIN, "log_counts"), say("Logarithmic counts"))
    st.caption(drawing.plain(about(one.numbers)))
    _left_out(one.numbers.nan, one.numbers.infinite)
    pair = pairs.get(name)
    scene = OneParameter(checkpoint, one, session.view(MAIN).of(ParametersLook).log_counts, loading, other, pair)
    drawing.beside(
        lambda: _spread(parameter_pictures.spread, scene, attempt(lambda: scene.spread)), lambda: _singular(scene)
    )
    if attempt(lambda: scene.has_rows):
        drawing.beside(
            lambda: show(parameter_pictures.rows, scene), lambda: show(parameter_pictures.row_lengths, scene)
        )
    if other is not None and pair is None:
        st.info(say("The other checkpoint has no tensor with this name and shape."), icon=":material/info:")
    elif other is not None:
        _spread(parameter_pictures.change, scene, attempt(lambda: scene.moved))


@paragraph
def about(numbers: Statistics) -> Iterator[str]:
    """What a parameter is, in a sentence or two."""
    yield say_n(
        "Shape {shape}, {n:,} number of type {type}.",
        "Shape {shape}, {n:,} numbers of type {type}.",
        numbers.size,
        shape=shape_of(numbers.shape),
        type=numbers.dtype,
    )
    if numbers.also:
        yield say("Also called {names}.", names=", ".join(numbers.also))
    if numbers.is_constant:
        yield say("All these numbers are {value:.6g}.", value=numbers.smallest)


def _left_out(nan: int, infinite: int) -> None:
    if nan or infinite:
        said = say(
            "Not counted below, because they are not finite: {nan:,} NaN and {infinite:,} infinite values.",
            nan=nan,
            infinite=infinite,
        )
        st.warning(said, icon=":material/warning:")


def _spread(picture: Picture[OneParameter], scene: OneParameter, found: Histogram | None) -> None:
    if found is not None and not len(found.counts):
        st.info(say("There are no finite numbers to draw."), icon=":material/info:")
    elif found is not None:
        show(picture, scene)


def _singular(scene: OneParameter) -> None:
    if len(scene.one.numbers.shape) != 2 or not scene.one.numbers.is_finite:
        st.info(say("Only a matrix without NaN or infinite values has singular values."), icon=":material/info:")
    elif (decomposed := scene.one if scene.one.spectrum is not None else _decomposed(scene)) is not None:
        show(parameter_pictures.singular, replace(scene, one=decomposed))


def _decomposed(scene: OneParameter) -> Known | None:
    """The parameter with its singular values, if they are cheap or requested."""
    checkpoint, one = scene.checkpoint, scene.one
    if one.work > MOST:
        st.info(too_large(1), icon=":material/info:")
        return None
    work = partial(parameter_pictures.with_spectrum, loading, checkpoint, one)
    if one.work <= ONE_AT_ONCE:
        return attempt(work)
    whose = f"{checkpoint.content_hash} {one.parameter.name}"
    return _if_asked(may_compute(one), work, key=DECOMPOSE, about=whose)
