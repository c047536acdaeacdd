"""The logit lens: what the decoder would write if it stopped at an earlier depth."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import charts
from charts.lens import HOW_TO_READ_CURVES, HOW_TO_READ_TABLE, Depth
from charts.lens_map import HOW_TO_READ_MAP
from transformer.analysis.logit_lens import Lens, Paths, paths
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Sampling
from ui.runs import figures
from ui.runs.attempt import attempt
from ui.runs.guessing import ask_first
from ui.runs.looking import is_yours
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of
from ui.state.view import Depths, LensColour
from words import joined, say

TABLE: Final = "lens_table"
CURVES: Final = "lens_curves"
MAP: Final = "lens_map"
REVEAL: Final = "lens_reveal"

DEPTH_NAMES: Final[dict[Depths, str]] = {"layer": say("Each layer"), "sublayer": say("Each sub-layer")}
COLOUR_NAMES: Final[dict[LensColour, str]] = {
    "probability": say("Probability"),
    "rank": say("Place", about="in an order, 1 is the top"),
}


def draw(run: OpenRun, row: Any) -> None:
    """Draw the lens of the current step, and of all steps that may be seen.

    Args:
        run: What is looked at.
        row: Where the controls of the page stand.
    """
    if not anatomy(run.checkpoint.config).writes:
        st.info(_no_lens(run))
        return
    found = attempt(lambda: figures.lens_of(run.checkpoint, run.trace))
    if found is None:
        return
    with row:
        depths = choices.choose(choices.field(run.slot, "depths"), say("Read after"), DEPTH_NAMES, bare=True)
    lens = found.by_layer() if depths == "layer" else found
    if run.looking.covered:
        ask_first(run, say("The lens of this step would tell."), key=REVEAL)
    else:
        drawing.beside(lambda: _table(run, lens), lambda: _curves(run, lens), widths=(3, 2))
        st.markdown(drawing.plain(path_in_words(run, lens)))
    st.caption(drawing.plain(what_it_is(run.checkpoint)))
    _map(run, lens)


def _no_lens(run: OpenRun) -> str:
    if anatomy(run.checkpoint.config).fills:
        return say(
            "This model writes nothing; its head says which piece fits at a token, and the lens does not read it."
        )
    return say("This model writes nothing: it has no output layer to read the stream with, so no lens.")


def depths_of(lens: Lens) -> list[Depth]:
    """What the places of a lens are called; where it reads whole layers, only the layer is named."""
    whole = all(place.ends_layer for place in lens.places)
    return [
        Depth(*[say("layer {layer}", layer=place.layer + 1)] * 2)
        if whole and place.layer is not None
        else Depth(place.short, place.name)
        for place in lens.places
    ]


# ------------------------------------------------------------------------------------------------ words


def what_it_is(checkpoint: Checkpoint) -> str:
    """What the lens does with this model, and how far it can be trusted."""
    config = checkpoint.config
    how = say("The decoder's stream at every depth is read as if it were the last: sent through the output "
              "layer as it is, for this model has no final norm.")  # fmt: skip
    if config.final_norm:
        how = say("The decoder's stream at every depth is read as if it were the last: sent through the final norm "
                  "and the output layer.")  # fmt: skip
    elif config.norm == "post":
        how = say("The decoder's stream at every depth is read as if it were the last: sent through the output "
                  "layer as it is, for a post-norm stream is already normalised.")  # fmt: skip
    said = [how, say("Those were trained for the last layer only, so an earlier depth may hold more than the lens "
                     "shows.")]  # fmt: skip
    if config.tie_output:
        said.append(say("The output layer is the embedding table, so the first depths tend to echo the piece that "
                        "was just read."))  # fmt: skip
    return joined(" ", said)


def path_in_words(run: OpenRun, lens: Lens) -> str:
    """When the piece of the current step was decided.

    Args:
        run: What is looked at.
        lens: Of its trace.
    """
    step, piece = run.view.step, run.trace.tgt_pieces[run.view.step]
    names, found = [depth.name for depth in depths_of(lens)], paths(lens.rank)
    first, stays = int(found.first[step]), int(found.stays[step])
    if stays < 0:
        said = [say("Step {step}: “{piece}” has rank {rank:,} after the last layer.", step=step + 1,
                    piece=piece, rank=int(lens.rank[-1, step])), _why(run)]  # fmt: skip
        said += [say("It was first on top after {depth}.", depth=names[first])] if first >= 0 else []
        return joined(" ", said)
    if stays == 0:
        return say("Step {step}: “{piece}” is the top candidate at every depth, from the embedding on.",
                   step=step + 1, piece=piece)  # fmt: skip
    prob = float(lens.prob[stays, step])
    if first == stays:
        return say("Step {step}: “{piece}” becomes the top candidate after {depth}, with a probability of "
                   "{prob:.2f}, and stays on top.", step=step + 1, piece=piece, depth=names[stays],
                   prob=prob)  # fmt: skip
    return say("Step {step}: “{piece}” is first on top after {first}, loses that place again, and is on top for good "
               "after {depth}, with a probability of {prob:.2f}.", step=step + 1, piece=piece, first=names[first],
               depth=names[stays], prob=prob)  # fmt: skip


def _why(run: OpenRun) -> str:
    if is_yours(run.trace, run.view.step):
        return say("It is in the output because you forced it.")
    if isinstance(run.trace.query.decoding, Sampling):
        return say("It is in the output because it was drawn at random.")
    if isinstance(run.trace.query.decoding, Beam):
        return say("It is in the output because beam search found the whole sentence more probable.")
    return say("It is not the model's first choice.")


def _summary(found: Paths, names: list[str], n_steps: int) -> str:
    """How many steps each depth decided."""
    stays = found.stays[:n_steps]
    decided = [(int((stays == depth).sum()), name) for depth, name in enumerate(names)]
    said = [say("{count} after {depth}", count=count, depth=name) for count, name in decided if count]
    never = int((stays < 0).sum())
    said += [say("{count} never", count=never)] if never else []
    counts = joined(", ", said)
    return say("Where the pieces of these {n} steps come to the top and stay: {counts}.", n=n_steps, counts=counts)


# ------------------------------------------------------------------------------------------------ one step


def _table(run: OpenRun, lens: Lens) -> None:
    step, trace = run.view.step, run.trace
    n_depths, n = lens.top_ids[:, step].shape
    figure = figures.lens_table(lens, trace, step, called=depths_of(lens))
    alt = say("The {n} most probable pieces after each of {n_depths} depths at step {step}; the output has {piece}.",
              n=n, n_depths=n_depths, step=step + 1, piece=trace.tgt_pieces[step])  # fmt: skip
    drawing.chart(figure, key=run.key(TABLE), alt=alt, how_to_read=HOW_TO_READ_TABLE, fit=True)


def _curves(run: OpenRun, lens: Lens) -> None:
    step = run.view.step
    piece = run.trace.tgt_pieces[step]
    figure = charts.lens_curves_spec(
        depths_of(lens),
        probability=lens.prob[:, step],
        rank=lens.rank[:, step],
        entropy=lens.entropy[:, step],
        divergence=lens.divergence[:, step],
        title=say("How “{piece}” came to the top", piece=piece),
    )
    alt = say("Probability and rank of {piece} by depth, and entropy and divergence of each depth's distribution.",
              piece=piece)  # fmt: skip
    drawing.chart(figure, key=run.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES, fit=True)


# ------------------------------------------------------------------------------------------------ all steps


def _map(run: OpenRun, lens: Lens) -> None:
    n_steps, first_row = run.looking.n_steps - int(run.looking.covered), run.trace.first_row
    if not n_steps:
        return
    measure = choices.choose(choices.field(run.slot, "lens_colour"), say("Colour"), COLOUR_NAMES)
    depths, found = depths_of(lens), paths(lens.rank)

    slot, key = run.slot, run.key(MAP)

    def go(cell: tuple[int, int]) -> None:
        if cell[1] < n_steps:
            session.move_to(slot, cell[1])

    figure = charts.lens_map_spec(
        depths,
        run.looking.row_labels()[first_row : first_row + n_steps],
        probability=lens.prob[:, :n_steps],
        rank=lens.rank[:, :n_steps],
        first=found.first[:n_steps],
        stays=found.stays[:n_steps],
        step=run.view.step if run.view.step < n_steps else None,
        title=say("{measure} of the output's piece by depth and step", measure=COLOUR_NAMES[measure]),
        measure=measure,
    )
    alt = say("{measure} of each step's output piece after each of {n} depths.", measure=COLOUR_NAMES[measure],
              n=len(depths))  # fmt: skip
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=on_click(key, cell_of, go))
    st.caption(drawing.plain(_summary(found, [depth.name for depth in depths], n_steps)))
    ends = np.flatnonzero(found.stays[:n_steps] == len(depths) - 1)
    if len(ends) == n_steps > 1:
        st.caption(say("No piece is settled before the last depth."))
