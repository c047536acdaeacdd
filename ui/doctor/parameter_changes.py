"""What another checkpoint has in the place of each parameter: how far the two are from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd

from transformer.analysis.differences import Difference, Paired
from transformer.analysis.parameters import Parameter
from transformer.checkpoint.load import Checkpoint
from ui.doctor import parameter_numbers
from ui.doctor.parameter_table import has, height_of, marked, opening, shape_of
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import MAIN
from words import joined, say, say_n

TABLE: Final = "differences"
OPEN: Final = "differences_open"
CSV: Final = "differences_csv"
MOST_NAMED: Final = 5
COMPARING: Final = say("Comparing the parameters")
COLUMNS: Final = {
    "largest": (say("Largest change"), say("The largest of |b - a|, a being this checkpoint and b the other.")),
    "mean": (say("Mean change"), say("The mean of |b - a|.")),
    "relative": (say("Relative"), say("‖b - a‖ / ‖a‖: 0 where nothing changed, about 1.4 where the two have nothing "
                                      "to do with each other.")),
    "cosine": (say("Cosine"), say("Of the angle between the two: 1 for the same direction, about 0 for none in "
                                  "common.")),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a checkpoint is compared with."""

    other: Checkpoint  # the other checkpoint
    pairs: dict[str, tuple[Parameter, Parameter]]  # the tensors that go together, by the name of the first


def choose(checkpoint: Checkpoint) -> Checkpoint | None:
    """Draw the choice of another checkpoint; returns it, opened, if one was chosen."""
    mine = st.session_state.get(session.MODEL)
    there = {name: entry for name, entry in loading.usable().items() if name != mine}
    asked = session.view(MAIN).against
    if asked and asked not in there:
        session.replace(MAIN, against="")
        drawing.notes([say("There is no other checkpoint “{name}” to compare with.", name=asked)])
    labels = {name: say("{title} ({name})", title=entry.title or name, name=name) for name, entry in there.items()}
    name = choices.menu(
        choices.field(MAIN, "against"),
        say("Compare with"),
        {"": say("Compare with no other"), **labels},
        bare=True,
        width=260,
    )
    return attempt(lambda: loading.open_checkpoint(there[name])) if name else None


def draw(checkpoint: Checkpoint, other: Checkpoint, chosen: str) -> Comparison | None:
    """Draw how far each parameter is from the other checkpoint's.

    Args:
        checkpoint, other: The two.
        chosen: Name of the parameter that is looked at.

    Returns:
        The two, for what is said of one parameter; None if nothing can be compared.
    """
    both = parameter_numbers.pairs(checkpoint, other)
    st.subheader(say("Difference from {name}", name=drawing.plain(other.name)))
    _unmatched(both, other)
    if not both.pairs:
        return None
    found = attempt(lambda: parameter_numbers.all_differences(checkpoint, other, both, COMPARING))
    if found is None:
        return None
    _table(by_size(found), other, chosen)
    return Comparison(other, {one.name: (one, partner) for one, partner in both.pairs})


def by_size(found: Sequence[Difference]) -> list[Difference]:
    """The largest relative change first, what could not be compared last."""
    return sorted(found, key=lambda one: -math.inf if math.isnan(one.relative) else one.relative, reverse=True)


def _unmatched(both: Paired, other: Checkpoint) -> None:
    names = both.unmatched
    if not names:
        return
    more = len(names) - MOST_NAMED
    listed = joined(", ", [*names[:MOST_NAMED], *([say("and {n} more", n=more)] if more > 0 else [])])
    drawing.notes(
        [
            say_n(
                "{n} tensor is in one of the two checkpoints alone, or of another shape in the other one, and is "
                "left out: {names}.",
                "{n} tensors are in one of the two checkpoints alone, or of another shape in the other one, and are "
                "left out: {names}.",
                len(names),
                names=listed,
            )
        ]
    )


def frame(found: Sequence[Difference]) -> pd.DataFrame:
    """One row a parameter; NaN where there is no number."""
    return pd.DataFrame([asdict(one) | {"shape": shape_of(one.shape)} for one in found])


def _table(compared: Sequence[Difference], other: Checkpoint, chosen: str) -> None:
    words = session.view(MAIN).names
    found = [one for one in compared if has(words, one.name)]
    if not found:
        st.info(say("No tensor that both have is called so. Take fewer words."), icon=":material/info:")
        return
    numbers, names = frame(found), [one.name for one in found]
    columns = ["open", "shape", *COLUMNS, *["left_out"] * any(one.left_out for one in found)]
    st.container(key=TABLE).dataframe(
        numbers.assign(open=marked(names, chosen))[columns],
        hide_index=True,
        height=height_of(len(found)),
        row_height=29,
        column_config={"open": opening(OPEN, names), **_columns()},
        placeholder="–",
        alt=say("How far each tensor is from that of {name}, the largest relative change first.", name=other.name),
    )
    same = sum(one.largest == 0 and not one.left_out for one in found)
    said = say_n(
        "{n} tensor is compared; equal: {same}. The largest relative change comes first.",
        "{n} tensors are compared; equal: {same}. The largest relative change comes first.",
        len(found),
        same=same,
    )
    st.caption(said)
    title = say("differences from {name}", name=other.name)
    drawing.csv_button(numbers, key=CSV, title=title, of_sentence=False)


def _columns() -> dict[str, Any]:
    own = {
        "shape": st.column_config.TextColumn(say("Shape"), width=110),
        "left_out": st.column_config.NumberColumn(
            say("Left out"), format="localized", help=say("Places where one of the two is NaN or infinite.")
        ),
    }
    return own | {
        name: st.column_config.NumberColumn(heading, format="%.4g", help=meaning)
        for name, (heading, meaning) in COLUMNS.items()
    }
