"""The parts of the Training page: the curves with the snapshots on them, and a sentence over training."""

import re
from collections.abc import Mapping
from functools import partial

from glassformer.extensions.snapshots.growing import growing, progress
from glassformer.extensions.snapshots.grown import has_snapshots
from glassformer.extensions.snapshots.slider import NO_SNAPSHOTS, move_to, whole_page_if_moved
from glassformer.extensions.training_page import health, outputs, sentence_pictures, training_pictures
from glassformer.extensions.training_page.training_look import TrainingLook
from glassformer.extensions.training_page.training_pictures import TRAINING, Curves
from glassformer.extensions.training_page.watch_panels import watch
from glassformer.frame.sentence_stepper import Still, sentence
from glassformer.runs.open_run import OpenRun, open_run, publish
from glassformer.runs.show import choose_part, show, show_beside
from glassformer.runs.sides import KIND_NAMES
from glassformer.shared import choices, cover, drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy

HIDDEN = say("This part shows whole outputs. Turn off “Hide candidates until I guess” to see it.")
_LINE = 84  # characters


@st.fragment
def draw(checkpoint: Checkpoint) -> None:
    """Draw the row of parts and the chosen one; a click runs this again, alone, unless it chose another model."""
    whole_page_if_moved()
    parts = {"curves": curves, "sentence": sentence_over_training, "watch": watch}
    parts[session.view().of(TrainingLook).training_panel](checkpoint)


# ------------------------------------------------------------------------------------------------ a sentence


def sentence_over_training(checkpoint: Checkpoint) -> None:
    """Draw the part "Your sentence": what each snapshot makes of it."""
    with choices.bar(MAIN):
        choose_part(TRAINING, MAIN)
        kinds = {kind: KIND_NAMES[kind] for kind in anatomy(checkpoint.config).kinds}
        kind = choices.menu(choices.field(MAIN, "kind"), say("Attention"), kinds, bare=True, width=160)
    run = open_run(checkpoint, kind=kind)
    if run is None:
        return
    sentence(run, compact=True, still=Still())
    cover.part(partial(_over_training, run))
    run.publish()


def _over_training(run: OpenRun) -> None:
    if not has_snapshots(run.checkpoint):
        st.info(NO_SNAPSHOTS, icon=":material/info:")
        return
    if run.view.guess:
        st.info(HIDDEN, icon=":material/visibility_off:")
        return
    found = growing(run)
    if found is None:
        return
    progress(found)
    told = health.verdicts(run.checkpoint, found.moments)
    if run.trace.n_steps and not cover.stands_for(run.key("training_outputs")):
        outputs.draw(found, told.said() if told else {})
    show(sentence_pictures.entropies, found, take=_open_head)
    health.ask(run.checkpoint, found.moments, n_drawn=told.done if told else 0)


def _open_head(meant: Mapping[str, int]) -> None:
    """Callback: look at a head of a snapshot."""
    session.replace(MAIN, layer=meant["layer"], head=meant["head"])
    move_to(meant["step"])


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
