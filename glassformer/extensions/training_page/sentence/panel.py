"""The part "Your sentence" of the Training page: what each snapshot makes of it."""

from collections.abc import Mapping
from functools import partial

from glassformer.extensions.snapshots.growing import growing, progress
from glassformer.extensions.snapshots.grown import has_snapshots
from glassformer.extensions.snapshots.slider import NO_SNAPSHOTS, move_to
from glassformer.extensions.training_page.sentence import health, outputs, sentence_pictures
from glassformer.extensions.training_page.training_pictures import TRAINING
from glassformer.frame.sentence_stepper import Still, sentence
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.show import choose_part, show
from glassformer.runs.sides import KIND_NAMES
from glassformer.shared import choices, cover
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say
from transformer.model.anatomy import anatomy

HIDDEN = say("This part shows whole outputs. Turn off “Hide candidates until I guess” to see it.")


def draw(checkpoint: Checkpoint) -> None:
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
