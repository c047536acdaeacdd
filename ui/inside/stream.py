"""The residual stream of every token by depth, what sub-layers add to it, and what norms do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import charts
from charts.embedding import embedding_rows_spec
from charts.stream import (
    HOW_TO_READ_ADDED,
    HOW_TO_READ_BIASED_NORM,
    HOW_TO_READ_BIASED_STRIP,
    HOW_TO_READ_DEVIATION_NORM,
    HOW_TO_READ_DEVIATION_STRIP,
    HOW_TO_READ_KEPT,
    HOW_TO_READ_NORM,
    HOW_TO_READ_RMS_NORM,
    HOW_TO_READ_RMS_STRIP,
    HOW_TO_READ_SIZE,
    HOW_TO_READ_STRIP,
)
from transformer.analysis import stream
from transformer.analysis.stream import Normed, Place, Stream
from transformer.model.anatomy import StackName
from transformer.model.config_layers import NormKind
from ui.inside import tokens
from ui.runs import figures, loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import choices, cover, drawing
from ui.shared.door import st
from ui.shared.numbers import digits
from ui.state.view import Side
from words import joined, say

SIZE: Final = "stream_size"
KEPT: Final = "stream_kept"
ADDED: Final = "stream_added"
NORM: Final = "stream_norm"
STRIP: Final = "stream_strip"
TOKEN: Final = "stream_token"
HOW_TO_READ_NORMS: Final[dict[NormKind, tuple[str, str]]] = {
    "layer": (HOW_TO_READ_NORM, HOW_TO_READ_STRIP),
    "rms": (HOW_TO_READ_RMS_NORM, HOW_TO_READ_RMS_STRIP),
    "deviation": (HOW_TO_READ_DEVIATION_NORM, HOW_TO_READ_DEVIATION_STRIP),
    "biased_deviation": (HOW_TO_READ_BIASED_NORM, HOW_TO_READ_BIASED_STRIP),
}


@dataclass(frozen=True)
class OpenStream:
    """What the part draws.

    Attributes:
        run: What is looked at.
        side: Whose stream.
        pieces: The tokens that may be seen.
        chosen: The one that is looked at.
        recorded: What the pass recorded; its rows after `pieces` must not be seen.
        measured: The measures of the stream.
    """

    run: OpenRun
    side: Side
    pieces: list[str]
    chosen: int
    recorded: dict[str, np.ndarray]
    measured: Stream

    @property
    def stack(self) -> StackName:
        """Whose layers."""
        return STACKS[self.side]

    @property
    def whose(self) -> str:
        """The chosen token, for titles."""
        return self.pieces[self.chosen]


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = tokens.choose_side(run)
        pieces = tokens.pieces_of(run, side)
        chosen = tokens.choose(run, side, pieces, key=TOKEN, width=220)
    config, stack = run.checkpoint.config, STACKS[side]
    recorded = attempt(lambda: loading.replay(run.checkpoint, run.trace, stream.sites(config, stack)))
    if recorded is None:
        return
    measured = stream.measure(recorded, config, stack, n_tokens=len(pieces))
    o = OpenStream(run, side, pieces, chosen, recorded, measured)
    drawing.beside(lambda: _lines(o, SIZE), lambda: _lines(o, KEPT))
    if not cover.covered(KEPT):  # it says the cosine
        st.markdown(drawing.plain(what_happens(o)))
    _added(o)
    _norms(o)


# ------------------------------------------------------------------------------------------------ the stream


def what_happens(o: OpenStream) -> str:
    """What this model's norms do to the size of the stream, with this sentence's numbers."""
    config, measured = o.run.checkpoint.config, o.measured
    n_sublayers = len(measured.sublayers)
    first, last = (float(measured.size[place].mean()) for place in (0, n_sublayers))
    kept = float(measured.kept[n_sublayers].mean())
    if config.norm == "both":
        said = [say("In this model sub-layers read a normalised copy, and what they add to the stream is normalised "
                    "too; on average over these tokens it goes from {first:.2f} to {last:.2f} in root mean square.",
                    first=first, last=last)]  # fmt: skip
    elif config.norm == "pre":
        said = [say("This model is pre-norm: sub-layers read a normalised copy and add to the stream itself; "
                    "on average over these tokens it goes from {first:.2f} to {last:.2f} in root mean square.",
                    first=first, last=last)]  # fmt: skip
    else:
        said = [say("This model is post-norm: a norm follows every sum, so the stream is rescaled each time; "
                    "on average over these tokens it goes from {first:.2f} to {last:.2f} in root mean square.",
                    first=first, last=last)]  # fmt: skip
    if config.norm != "post" and config.final_norm:
        said += [say("The final norm brings it to {size:.2f}.", size=float(measured.size[-1].mean()))]
    said += [say("After the last layer its cosine with what it began as is {kept:.2f}.", kept=kept)]
    return joined(" ", said)


def _lines(o: OpenStream, key: str) -> None:
    size, stack = key == SIZE, figures.STACK_NAMES[o.stack]
    figure = figures.stream_lines(o.measured, o.pieces, size=size, chosen=o.chosen, side=o.side)
    if size:
        alt = say("Root mean square of the vector of each of {n} tokens by depth in the {stack}; {token} is chosen.",
                  n=len(o.pieces), stack=stack, token=o.whose)  # fmt: skip
    else:
        alt = say("Cosine with its embedding plus position of each of {n} tokens by depth in the {stack}; {token} is "
                  "chosen.", n=len(o.pieces), stack=stack, token=o.whose)  # fmt: skip
    how_to_read = HOW_TO_READ_SIZE if size else HOW_TO_READ_KEPT
    drawing.chart(
        figure,
        key=o.run.key(key),
        alt=alt,
        how_to_read=how_to_read,
        fit=True,
        on_click=tokens.clicked(o.run, o.side, key, len(o.pieces)),
    )


def _added(o: OpenStream) -> None:
    figure = figures.stream_added(o.measured, o.pieces, chosen=o.chosen, side=o.side)
    alt = say("Size of the stream of {token} and of what each sub-layer of the {stack} adds to it.", token=o.whose,
              stack=figures.STACK_NAMES[o.stack])  # fmt: skip
    drawing.chart(figure, key=o.run.key(ADDED), alt=alt, how_to_read=HOW_TO_READ_ADDED)


# ------------------------------------------------------------------------------------------------ the norms


def _norms(o: OpenStream) -> None:
    config = o.run.checkpoint.config
    if config.norm_kind == "none":
        st.caption(say("This model has no norms."))
        return
    where = stream.norm_places(config, o.stack)
    names = {place: norm_name(one, pre=config.norm != "post") for place, one in enumerate(where)}
    if config.norm == "both" or config.embedding_norm:
        st.caption(say("Norms on a sub-layer's output, and one after the embedding, are not listed here."))
    chosen = choices.menu(choices.field(o.run.slot, "norm"), say("Norm"), names, width=340)
    place = where[chosen]
    found = stream.normed(o.recorded, o.run.checkpoint.model, o.stack, place, n_tokens=len(o.pieces))
    st.markdown(drawing.plain(what_a_norm_does(found)))
    name = names[chosen]
    figure = charts.norm_effect_spec(
        o.pieces,
        means=(found.mean_before, found.mean_after),
        deviations=(found.deviation_before, found.deviation_after),
        chosen=o.chosen,
        title=norm_title(place, pre=config.norm != "post"),
        token_axis=figures.AXES[o.side],
        colour=o.side,
    )
    alt = say("Mean and standard deviation of each token's vector before and after {norm}.", norm=name)
    on_click = tokens.clicked(o.run, o.side, NORM, len(o.pieces))
    how_to_read, how_to_read_strip = HOW_TO_READ_NORMS[config.norm_kind]
    drawing.chart(figure, key=o.run.key(NORM), alt=alt, how_to_read=how_to_read, on_click=on_click)
    rows = {
        say("before", about="before a norm"): found.before,
        say("standardised"): found.standardised,
        say("after", about="after a norm"): found.after,
    }
    figure = embedding_rows_spec(
        np.stack([vectors[o.chosen] for vectors in rows.values()]),
        list(rows),
        title=say("{token}: its vector before and after", token=o.whose),
    )
    alt = say("The vector of {token} before {norm}, standardised, and after, one column a dimension.",
              token=o.whose, norm=name)  # fmt: skip
    drawing.chart(figure, key=o.run.key(STRIP), alt=alt, how_to_read=how_to_read_strip)


def norm_name(place: Place, *, pre: bool) -> str:
    """A norm in a few words, for a sentence.

    Args:
        place: Its place.
        pre: It stands before its sub-layer, not after.
    """
    if place.layer is None:
        return place.name
    return say("the norm before {part}", part=place.name) if pre else say("the norm after {part}", part=place.name)


def norm_title(place: Place, *, pre: bool) -> str:
    """The same as a title."""
    if place.layer is None:
        return say("The final norm")
    return say("The norm before {part}", part=place.name) if pre else say("The norm after {part}", part=place.name)


def what_a_norm_does(found: Normed) -> str:
    """The range of the numbers before and after, and whether the formula gives what the model has."""
    said = [
        say("The standard deviation of a token's {n} numbers is {before} before and {after} after; γ is {gamma} by "
            "dimension.", n=found.before.shape[1], before=_range(found.deviation_before),
            after=_range(found.deviation_after), gamma=_range(found.gamma)),
        say("The formula gives the model's numbers to within {difference}.", difference=digits(found.difference)),
    ]  # fmt: skip
    return joined(" ", said)


def _range(values: np.ndarray) -> str:
    return say("{least:.2f} to {most:.2f}", least=float(values.min()), most=float(values.max()))
