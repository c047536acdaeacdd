"""The parts of the Inside page about the stream by depth: residual stream, and what the logit lens reads from it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glassformer.inside import inside_controls, lens_pictures, stream_pictures
from glassformer.inside.lens_pictures import COLOUR_NAMES, DEPTH_NAMES, depths_of, open_lens
from glassformer.inside.stream_pictures import OpenStream, norm_name, open_stream
from glassformer.inside.token_selection import pieces_of
from glassformer.runs.open_run import OpenRun, attempt
from glassformer.runs.show import ask_first, show, show_beside
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.analysis.logit_lens import Paths, paths
from transformer.analysis.stream import Normed
from transformer.i18n import joined, paragraph, say
from transformer.i18n.sentence import digits
from transformer.model.anatomy import anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def stream(run: OpenRun, row: Any) -> None:
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


def lens(run: OpenRun, row: Any) -> None:
    """Draw the lens of the current step, and of all steps that may be seen."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_no_lens(run))
        return
    o = attempt(lambda: open_lens(run))
    if o is None:
        return
    with row:
        controls.choose(controls.field(run.slot, "depths"), say("Read after"), DEPTH_NAMES, bare=True)
    if run.visible.covered:
        ask_first(run, say("The logit lens of this step would give the answer away."), key="lens_reveal")
    else:
        show_beside(lens_pictures.table, lens_pictures.curves, o, widths=(3, 2))
    if not o.n_steps:
        drawing.explain(drawing.plain(what_it_is(run.checkpoint)))
        return
    controls.choose(controls.field(run.slot, "lens_colour"), say("Colour"), COLOUR_NAMES)
    show(lens_pictures.lens_map, o, take=partial(session.move_to, run.slot))
    depths, found = depths_of(o.lens), paths(o.lens.rank)
    said = [what_it_is(run.checkpoint), _summary(found, [depth.name for depth in depths], o.n_steps)]
    drawing.explain(*map(drawing.plain, said))


def _no_lens(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This encoder-only model generates no output. Its MLM head predicts masked tokens, but the lens does "
            "not use that head."
        )
    return say("This encoder-only model has no output layer that could read the stream, so it has no logit lens.")


@paragraph
def what_it_is(checkpoint: Checkpoint) -> Iterator[str]:
    """What the lens does with this model, and how far it can be trusted."""
    config = checkpoint.config
    how = say(
        "The decoder's stream at every depth is read as if it came from the last layer. It goes straight to the "
        "output layer, because this model has no final norm."
    )
    if config.final_norm:
        how = say(
            "The decoder's stream at every depth is read as if it came from the last layer. It goes through the "
            "final norm and the output layer."
        )
    elif config.norm == "post":
        how = say(
            "The decoder's stream at every depth is read as if it came from the last layer. It goes straight to "
            "the output layer, because a post-norm stream is already normalised."
        )
    yield how
    yield say(
        "The output layer and any norm before it were trained only on the last layer, so an earlier depth may "
        "contain more information than the lens shows."
    )
    if config.tie_output:
        yield say(
            "The output layer uses the embedding table, so the first depths tend to echo the token that was just read."
        )


def _summary(found: Paths, names: list[str], n_steps: int) -> str:
    """How many steps each depth decided."""
    stays = found.stays[:n_steps]
    decided = [(int((stays == depth).sum()), name) for depth, name in enumerate(names)]
    said = [say("{count} after {depth}", count=count, depth=name) for count, name in decided if count]
    never = int((stays < 0).sum())
    said += [say("{count} never", count=never)] if never else []
    counts = joined(", ", said)
    return say(
        "Depth from which each step's token stays the top candidate, for these {n} steps: {counts}.",
        n=n_steps,
        counts=counts,
    )
