"""Part "Logit lens": choice of depths; table and curves of the current step, map of all steps, explanation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from glassformer.inside import lens_pictures
from glassformer.inside.lens_pictures import COLOUR_NAMES, DEPTH_NAMES, depths_of, open_lens
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import ask_first, show, show_beside
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.analysis.logit_lens import Paths, paths
from transformer.i18n import joined, paragraph, say
from transformer.model.anatomy import anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

_WITHOUT_HEAD = say(
    "This encoder-only model generates no output. Its MLM head predicts masked tokens, but the lens does not use that "
    "head."
)
_WITHOUT_OUTPUT = say(
    "This encoder-only model has no output layer that could read the stream, so it has no logit lens."
)


def draw(run: OpenRun, row: Any) -> None:
    """Draw the lens of the current step, and of all steps that may be seen."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(_WITHOUT_HEAD if anatomy(run.checkpoint.config).fills else _WITHOUT_OUTPUT)
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
