"""The Training page, and its part about curves, with the snapshots on them."""

import re
from functools import partial

from glassformer.extensions.snapshots.slider import move_to, whole_page_if_moved
from glassformer.extensions.training_page import training_pictures
from glassformer.extensions.training_page.training_look import TrainingLook
from glassformer.extensions.training_page.training_pictures import TRAINING, Curves
from glassformer.runs.open_run import publish
from glassformer.runs.show import choose_part, show, show_beside
from glassformer.shared import choices, cover, drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError
from transformer.i18n import joined, say

_LINE = 84  # characters


@st.fragment
def draw(checkpoint: Checkpoint) -> None:
    """Draw the row of parts and the chosen one; a click runs this again, alone, unless it chose another model."""
    whole_page_if_moved()
    TRAINING.listed()[session.view().of(TrainingLook).training_panel].draw(checkpoint)


def curves(checkpoint: Checkpoint) -> None:
    """Draw the part "Curves"."""
    scene = _scene(checkpoint)
    with choices.bar(MAIN):
        choose_part(TRAINING, MAIN)
        if isinstance(scene, Curves) and scene.moments:
            _axis(scene)
    drawing.notes(session.take_notes())
    cover.part(partial(_curves, checkpoint, scene))
    publish(checkpoint)


def _scene(checkpoint: Checkpoint) -> Curves | CheckpointError | None:
    try:
        return training_pictures.curves(checkpoint, session.view())
    except CheckpointError as error:
        return error


def _axis(scene: Curves) -> None:
    """Draw the choice of the axis."""
    kept = choices.field(MAIN, "by_step")
    named = {True: say("By step"), False: say("By epoch")}
    choices.choose(choices.Kept(kept.key, scene.by_step, kept.take), say("Horizontal axis"), named, bare=True)


def _curves(checkpoint: Checkpoint, scene: Curves | CheckpointError | None) -> None:
    """Draw how a checkpoint was trained, as far as its folder says."""
    if isinstance(scene, CheckpointError):
        said = joined(" ", [scene.sentence, say("No learning curve is shown.")])
        st.warning(drawing.plain(said), icon=":material/warning:")
    elif scene is None:
        st.caption(say("This folder has no training.csv, so there is no learning curve to show."))
    else:
        drawing.notes(scene.curve.notes)
        show_beside(training_pictures.losses, training_pictures.scores, scene, take=move_to)
        show(training_pictures.rates, scene, take=move_to)
    command = checkpoint.card.training.get("command")
    if isinstance(command, str) and command:
        st.caption(say("The command that trained this checkpoint:"))
        st.code(in_lines(command), language="shell")


def in_lines(command: str) -> str:
    """A long command on several lines that a shell takes as one, each new one begun by an option."""
    if any(sign in command for sign in "'\"\\\n"):
        return command  # what is quoted must stay as it is
    lines = [""]
    for option in re.split(r" (?=--)", command):
        fits = len(lines[-1]) + len(option) < _LINE
        lines = [*lines[:-1], f"{lines[-1]} {option}".strip()] if fits else [*lines, option]
    return " \\\n    ".join(filter(None, lines))
