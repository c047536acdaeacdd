"""The parts of the Training page: the curves with the snapshots on them, and a sentence over training."""

from __future__ import annotations

import re
from functools import partial

from transformer.checkpoint import snapshots
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError
from ui.runs.open_run import publish
from ui.runs.show import choose_part, show
from ui.shared import choices, cover, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import MAIN
from ui.training import training_pictures
from ui.training.training_pictures import TRAINING, Curves
from ui.training.watch_panels import watch
from words import joined, say

MOVED = "moved_to_snapshot"  # in the session: a click has chosen another one, and all of the page is to be drawn
_LINE = 84  # characters


@st.fragment
def draw(checkpoint: Checkpoint) -> None:
    """Draw the row of parts and the chosen one; a click runs this again, alone, unless it chose another model."""
    if st.session_state.pop(MOVED, False):
        st.rerun()
    {"curves": curves, "watch": watch}[session.view().training_panel](checkpoint)


# ------------------------------------------------------------------------------------------------ the curves


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
        take = partial(move_to, snapshots.folder_of(checkpoint.folder).name.removesuffix(snapshots.FOLDER))
        pictures = (training_pictures.losses, training_pictures.scores)
        drawing.beside(*(partial(show, picture, scene, take=take) for picture in pictures))
        show(training_pictures.rates, scene, take=take)
    command = checkpoint.card.training.get("command")
    if isinstance(command, str) and command:
        st.caption(say("The command that trained this checkpoint:"))
        st.code(in_lines(command), language="shell", wrap_lines=True)


def move_to(name: str, step: int) -> None:
    """Callback: look at a snapshot of a checkpoint."""
    st.session_state[session.MODEL] = f"{name}{snapshots.AT}{step}"
    st.session_state[MOVED] = True


def in_lines(command: str) -> str:
    """A long command on several lines that a shell takes as one, each new one begun by an option."""
    if any(sign in command for sign in "'\"\\\n"):
        return command  # what is quoted must stay as it is
    lines = [""]
    for option in re.split(r" (?=--)", command):
        fits = len(lines[-1]) + len(option) < _LINE
        lines = [*lines[:-1], f"{lines[-1]} {option}".strip()] if fits else [*lines, option]
    return " \\\n    ".join(filter(None, lines))
