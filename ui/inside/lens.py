"""The logit lens: what the decoder would write if it stopped at an earlier depth."""

from __future__ import annotations

from typing import Final

import numpy as np
import streamlit as st

import charts
from charts.lens import HOW_TO_READ_CURVES, HOW_TO_READ_TABLE, Depth
from charts.lens_map import HOW_TO_READ_MAP
from transformer.analysis.logit_lens import Lens, Paths, logit_lens, paths
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Beam, Sampling
from transformer.runs.trace import Trace
from ui.inside.guessing import ask_first
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.looking import is_yours
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import cell_of, on_click
from ui.state import session
from ui.state.view import Depths, LensColour

TABLE: Final = "lens_table"
CURVES: Final = "lens_curves"
MAP: Final = "lens_map"
REVEAL: Final = "lens_reveal"

DEPTH_NAMES: Final[dict[Depths, str]] = {"layer": "Each layer", "sublayer": "Each sub-layer"}
COLOUR_NAMES: Final[dict[LensColour, str]] = {"probability": "Probability", "rank": "Place"}


def draw(run: OpenRun) -> None:
    """Draw the lens of the current step, and of all steps that may be seen."""
    found = attempt(lambda: lens_of(run.checkpoint, run.trace))
    if found is None:
        return
    control, words = st.columns([2, 5], gap="medium")
    with control:
        depths = choices.choose(choices.field(run.slot, "depths"), "Read after", DEPTH_NAMES)
    words.caption(drawing.plain(what_it_is(run.checkpoint)))
    lens = found.by_layer() if depths == "layer" else found
    if run.looking.covered:
        ask_first(run, "The lens of this step would tell.", key=REVEAL)
    else:
        st.markdown(drawing.plain(path_in_words(run, lens)))
        left, right = st.columns([3, 2], gap="large")
        with left:
            _table(run, lens)
        with right:
            _curves(run, lens)
    _map(run, lens)


def lens_of(checkpoint: Checkpoint, trace: Trace) -> Lens:
    """The lens of a run, made once.

    Raises:
        QueryError: The trace is of another checkpoint.
        BusyError: The model has too much to do.
    """
    return loading.runner().compute(
        ("logit lens", trace.query, trace.tgt_ids, trace.src_ids, trace.read_ids),
        lambda: logit_lens(checkpoint, trace),
        nbytes=lambda lens: lens.nbytes,
    )


def depths_of(lens: Lens) -> list[Depth]:
    """What the places of a lens are called; where it reads whole layers, only the layer is named."""
    whole = all(place.ends_layer for place in lens.places)
    return [
        Depth(f"layer {place.layer + 1}", f"layer {place.layer + 1}")
        if whole and place.layer is not None
        else Depth(place.short, place.name)
        for place in lens.places
    ]


# ------------------------------------------------------------------------------------------------ words


def what_it_is(checkpoint: Checkpoint) -> str:
    """What the lens does with this model, and how far it can be trusted."""
    config = checkpoint.config
    if config.final_norm:
        how = "sent through the final norm and the output projection"
    elif config.norm == "post":
        how = "sent through the output projection as it is, for a post-norm stream is already normalised"
    else:
        how = "sent through the output projection as it is, for this model has no final norm"
    said = (
        f"The decoder's stream at every depth is read as if it were the last: {how}. Those were trained for the last "
        "layer only, so an earlier depth may hold more than the lens shows."
    )
    tied = " The projection is the embedding table, so the first depths tend to echo the piece that was just read."
    return said + (tied if config.tie_output else "")


def path_in_words(run: OpenRun, lens: Lens) -> str:
    """When the piece of the current step was decided.

    Args:
        run: What is looked at.
        lens: Of its trace.
    """
    step, trace = run.view.step, run.trace
    names, found = [depth.name for depth in depths_of(lens)], paths(lens.rank)
    first, stays, piece = int(found.first[step]), int(found.stays[step]), trace.tgt_pieces[step]
    said = f"Step {step + 1}: “{piece}”"
    if stays < 0:
        place = int(lens.rank[-1, step])
        earlier = f" It was first on top after {names[first]}." if first >= 0 else ""
        return f"{said} stands at place {place:,} after the last layer, so {_why(run)}.{earlier}"
    if stays == 0:
        return f"{said} is the top candidate at every depth, from the embedding on."
    prob = f"with a probability of {lens.prob[stays, step]:.2f}"
    if first == stays:
        return f"{said} becomes the top candidate after {names[stays]}, {prob}, and stays on top."
    return (
        f"{said} is first on top after {names[first]}, loses that place again, and is on top for good after "
        f"{names[stays]}, {prob}."
    )


def _why(run: OpenRun) -> str:
    if is_yours(run.trace, run.view.step):
        return "it is in the output because you forced it"
    if isinstance(run.trace.query.decoding, Sampling):
        return "it is in the output because it was drawn at random"
    if isinstance(run.trace.query.decoding, Beam):
        return "it is in the output because beam search found the whole sentence more probable"
    return "it is not the model's first choice"


def _summary(found: Paths, names: list[str], n_steps: int) -> str:
    """How many steps each depth decided."""
    stays = found.stays[:n_steps]
    counts = [(int((stays == depth).sum()), f"after {name}") for depth, name in enumerate(names)]
    said = ", ".join(f"{count} {where}" for count, where in counts if count)
    never = int((stays < 0).sum())
    said += f"{', ' if said else ''}{never} never" if never else ""
    return f"Where the pieces of these {n_steps} steps come to the top and stay: {said}."


# ------------------------------------------------------------------------------------------------ one step


def _table(run: OpenRun, lens: Lens) -> None:
    step, trace = run.view.step, run.trace
    ids = lens.top_ids[:, step]  # [depth, place]
    reads = trace.row_label(step).reads
    figure = charts.lens_table_spec(
        depths_of(lens),
        [[trace.vocabulary[i] for i in row] for row in ids.tolist()],
        lens.top_probs[:, step],
        chosen=ids == trace.tgt_ids[step],
        title=f"Step {step + 1}: what each depth would write after {reads}",
    )
    alt = (
        f"The {ids.shape[1]} most probable pieces after each of {len(ids)} depths at step {step + 1}; the output has "
        f"{trace.tgt_pieces[step]}."
    )
    drawing.chart(figure, key=run.key(TABLE), alt=alt, how_to_read=HOW_TO_READ_TABLE)


def _curves(run: OpenRun, lens: Lens) -> None:
    step = run.view.step
    piece = run.trace.tgt_pieces[step]
    figure = charts.lens_curves_spec(
        depths_of(lens),
        probability=lens.prob[:, step],
        rank=lens.rank[:, step],
        entropy=lens.entropy[:, step],
        divergence=lens.divergence[:, step],
        title=f"How “{piece}” came to the top",
    )
    alt = f"Probability and place of {piece} by depth, and entropy and divergence of each depth's prediction."
    drawing.chart(figure, key=run.key(CURVES), alt=alt, how_to_read=HOW_TO_READ_CURVES)


# ------------------------------------------------------------------------------------------------ all steps


def _map(run: OpenRun, lens: Lens) -> None:
    n_steps = run.looking.n_rows - int(run.looking.covered)
    if not n_steps:
        return
    measure = choices.choose(choices.field(run.slot, "lens_colour"), "Colour", COLOUR_NAMES)
    depths, found = depths_of(lens), paths(lens.rank)

    slot, key = run.slot, run.key(MAP)

    def go(cell: tuple[int, int]) -> None:
        if cell[1] < n_steps:
            session.move_to(slot, cell[1])

    figure = charts.lens_map_spec(
        depths,
        run.looking.row_labels()[:n_steps],
        probability=lens.prob[:, :n_steps],
        rank=lens.rank[:, :n_steps],
        first=found.first[:n_steps],
        stays=found.stays[:n_steps],
        step=run.view.step if run.view.step < n_steps else None,
        title=f"{COLOUR_NAMES[measure]} of the output's piece by depth and step",
        measure=measure,
    )
    alt = f"{COLOUR_NAMES[measure]} of each step's output piece after each of {len(depths)} depths."
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_MAP, on_click=on_click(key, cell_of, go))
    st.caption(drawing.plain(_summary(found, [depth.name for depth in depths], n_steps)))
    ends = np.flatnonzero(found.stays[:n_steps] == len(depths) - 1)
    if len(ends) == n_steps > 1:
        st.caption("No piece is settled before the last depth.")
