"""Part "Residual stream": its size by depth, what sub-layers add to it, and what each norm does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassformer.inside import inside_controls, stream_pictures
from glassformer.inside.stream_pictures import OpenStream, norm_name, open_stream
from glassformer.inside.token_selection import pieces_of
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show, show_beside
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import st
from transformer.analysis.stream import Normed
from transformer.i18n import paragraph, say
from transformer.i18n.sentence import digits


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = inside_controls.choose_side(run)
        inside_controls.choose_token(run, side, pieces_of(run, side), key="stream_token", width=220)
    o = attempt(lambda: open_stream(run))
    if o is None:
        return
    take = inside_controls.taking(run, side)
    show_beside(stream_pictures.size, stream_pictures.kept, o, take=take)
    if not cover_box.covered(stream_pictures.kept.key):  # it says the cosine
        drawing.explain(drawing.plain(what_happens(o)))
    show(stream_pictures.added, o)
    config = run.checkpoint.config
    if not o.norms:
        st.caption(say("This model has no norms."))
        return
    names = {place: norm_name(one, pre=o.pre) for place, one in enumerate(o.norms)}
    if config.norm == "both" or config.embedding_norm:
        st.caption(say("This list leaves out norms on sub-layer outputs and any norm after the embedding."))
    controls.menu(controls.field(run.slot, "norm"), say("Norm"), names, width=340)
    show(stream_pictures.norm, o, take=take)
    show(stream_pictures.strip, o)
    drawing.explain(drawing.plain(what_a_norm_does(o.normed)))


@paragraph
def what_happens(o: OpenStream) -> Iterator[str]:
    """What this model's norms do to the size of the stream, with this sentence's numbers."""
    config, measured = o.run.checkpoint.config, o.measured
    n_sublayers = len(measured.sublayers)
    first, last = (float(measured.size[place].mean()) for place in (0, n_sublayers))
    kept = float(measured.kept[n_sublayers].mean())
    if config.norm == "both":
        yield say(
            "In this model, sub-layers read a normalised copy of the stream, and what they add to it is "
            "normalised, too. Averaged over these tokens, the stream's root mean square goes from {first:.2f} "
            "to {last:.2f}.",
            first=first,
            last=last,
        )
    elif config.norm == "pre":
        yield say(
            "This model is pre-norm: sub-layers read a normalised copy of the stream and add their output to "
            "the stream itself. Averaged over these tokens, the stream's root mean square goes from "
            "{first:.2f} to {last:.2f}.",
            first=first,
            last=last,
        )
    else:
        yield say(
            "This model is post-norm: a norm follows every sum, so the stream is rescaled each time. Averaged "
            "over these tokens, the stream's root mean square goes from {first:.2f} to {last:.2f}.",
            first=first,
            last=last,
        )
    if config.norm != "post" and config.final_norm:
        yield say("The final norm brings the root mean square to {size:.2f}.", size=float(measured.size[-1].mean()))
    yield say(
        "After the last layer, the cosine between the stream and its starting vector is {kept:.2f} on average.",
        kept=kept,
    )


@paragraph
def what_a_norm_does(found: Normed) -> Iterator[str]:
    """The range of the numbers before and after, and whether the formula gives what the model has."""
    yield say(
        "Each token's vector has {n} numbers. Their standard deviation is {before} before the norm and {after} "
        "after it, depending on the token. The norm's γ is {gamma}, depending on the dimension.",
        n=found.before.shape[1],
        before=_range(found.deviation_before),
        after=_range(found.deviation_after),
        gamma=_range(found.gamma),
    )
    yield say("The formula reproduces the model's numbers to within {difference}.", difference=digits(found.difference))


def _range(values: np.ndarray) -> str:
    return say("{least:.2f} to {most:.2f}", least=float(values.min()), most=float(values.max()))
