"""The part "Parameters" of the Doctor page: every learned tensor, what numbers it holds, and one of them looked at.

What the numbers are stands in `transformer.analysis.parameters` and `spectra`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from transformer.checkpoint.load import Checkpoint
from ui.doctor import one_parameter, parameter_changes, parameter_numbers, parameter_table
from ui.doctor.parameter_numbers import MOST
from ui.doctor.parameter_table import is_of
from ui.doctor.pictures import SPEED, Known
from ui.runs.attempt import attempt
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.shared.pressing import pressed
from ui.state import session
from ui.state.view import LONGEST_NAME, MAIN, Tensors
from words import say, say_n

SPECTRA: Final = "parameters_spectra"
READING: Final = say("Reading the parameters")
DECOMPOSING: Final = say("Computing singular values")


def draw(checkpoint: Checkpoint) -> None:
    """Draw the part."""
    found = attempt(lambda: parameter_numbers.known(checkpoint, READING))
    if found is None:
        return
    other = _controls(checkpoint, found)
    chosen = _chosen(found)
    found = _spectra(checkpoint, found)
    parameter_table.draw(found, chosen)
    both = None if other is None else parameter_changes.draw(checkpoint, other, chosen)
    one_parameter.draw(checkpoint, next(one for one in found if one.parameter.name == chosen), both, names_of(found))


def names_of(found: Sequence[Known]) -> list[str]:
    """The names of the parameters, in the order of the model."""
    return [one.parameter.name for one in found]


def _controls(checkpoint: Checkpoint, found: Sequence[Known]) -> Checkpoint | None:
    """Draw what is listed, and what it is compared with; returns the other checkpoint, if there is one."""
    odd, constant = (sum(is_of(one, which) for one in found) for which in ("not_finite", "constant"))
    which: dict[Tensors, str] = {
        "all": say("All · {n}", n=len(found)),
        "not_finite": say("Not finite · {n}", n=odd),
        "constant": say("Constant · {n}", n=constant),
    }
    with parameter_table.bar("parameters"):
        choices.typed(
            choices.field(MAIN, "names"),
            say("Words of the name"),
            most=LONGEST_NAME,
            width=220,
            help=say("Lists the tensors whose names have all of these words, such as decoder query."),
        )
        choices.choose(choices.field(MAIN, "tensors"), say("Which are listed"), which, bare=True)
        return parameter_changes.choose(checkpoint)


def _chosen(found: Sequence[Known]) -> str:
    """The name of the parameter that is looked at; one that there is not is let go and said."""
    asked, names = session.view(MAIN).tensor, names_of(found)
    if asked in names:
        return asked
    if asked:
        also = next((one.parameter.name for one in found if asked in one.parameter.also), None)
        session.replace(MAIN, tensor=also or "")
        if also:
            return also
        drawing.notes([say("This model has no tensor “{name}”; {shown} is shown.", name=asked, shown=names[0])])
    return names[0]


# ------------------------------------------------------------------------------------------------ singular values


def _spectra(checkpoint: Checkpoint, found: list[Known]) -> list[Known]:
    """Have the singular values that a large model lacks computed, if the reader asks for that."""
    missing = [one for one in found if 0 < one.work <= MOST]
    if not missing:
        return found
    place = st.empty()
    label = say_n(
        "Singular values of {n} matrix, about {seconds} s",
        "Singular values of {n} matrices, about {seconds} s",
        len(missing),
        seconds=max(1, round(sum(one.work for one in missing) / SPEED)),
    )
    about = checkpoint.content_hash
    with pressed(place.button, label, key=SPECTRA, about=about, icon=":material/calculate:") as asked:
        if not asked:
            return found
        place.empty()
        return attempt(lambda: parameter_numbers.with_spectra(checkpoint, found, DECOMPOSING)) or found
