"""The training of a checkpoint on the Checkpoints page: its learning curves, and the command."""

from __future__ import annotations

import re

from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError
from ui.checkpoints import pictures
from ui.runs.show import show
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

_LINE = 84  # characters


def training(checkpoint: Checkpoint) -> None:
    """Draw how a checkpoint was trained, as far as its folder says."""
    command = checkpoint.card.training.get("command")
    st.subheader(say("Training"))
    _curves(checkpoint)
    if isinstance(command, str) and command:
        st.caption(say("The command that trained it:"))
        st.code(in_lines(command), language="shell", wrap_lines=True)


def in_lines(command: str) -> str:
    """A long command on several lines that a shell takes as one, each new one begun by an option."""
    if any(sign in command for sign in "'\"\\\n"):
        return command  # what is quoted must stay as it is
    lines = [""]
    for option in re.split(r" (?=--)", command):
        fits = len(lines[-1]) + len(option) < _LINE
        lines = [*lines[:-1], f"{lines[-1]} {option}".strip()] if fits else [*lines, option]
    return " \\\n    ".join(filter(None, lines))


def _curves(checkpoint: Checkpoint) -> None:
    try:
        scene = pictures.curves(checkpoint)
    except CheckpointError as error:
        said = joined(" ", [error.sentence, say("So no curve is shown.")])
        st.warning(drawing.plain(said), icon=":material/warning:")
        return
    if scene is None:
        st.caption(say("This folder has no training.csv, so there is no learning curve to show."))
        return
    drawing.notes(scene.curve.notes)
    drawing.beside(lambda: show(pictures.losses, scene), lambda: show(pictures.scores, scene))
    show(pictures.rates, scene)
