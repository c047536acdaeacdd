"""The parts of the Step page: the sentence with its controls, candidates, results, attention, entropy."""

from functools import partial

from glassformer.frame.sentence_stepper import sentence
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import choices, cover, page_style
from glassformer.shared.door import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from glassformer.step import hiding, piece_choice, step_pictures
from transformer.i18n import say


def draw(run: OpenRun) -> None:
    """Draw the sentence, the parts below it, and what can be done with the head that is chosen."""
    sentence(run, chosen=hiding.chosen(run), asks=piece_choice.was_refused(run))
    cover.part(lambda: parts(run))
    for blocks in page_blocks():
        blocks.for_head(run, run.looking.kind, run.view.layer, run.view.head)


def parts(run: OpenRun) -> None:
    """Draw all of them."""
    if not run.trace.n_steps:
        hiding.draw(run)
        return
    piece_choice.results(run)
    with st.container(key=run.key(page_style.STEP_GRID)):
        candidates(run)
        _unsureness(run)
        show(step_pictures.cross_row, run)
        show(step_pictures.cross_map, run)


def candidates(run: OpenRun) -> None:
    """Draw the most probable pieces of the step; in guess mode ask for a guess first."""
    if not run.view.guess:
        _candidate_chart(run)
        return
    with st.container(key=run.key(page_style.GUESSING)):
        if run.looking.covered:
            piece_choice.guess(run)
            piece_choice.branches(run)
        else:
            piece_choice.verdict(run)
            _candidate_chart(run)


def _candidate_chart(run: OpenRun) -> None:
    show(step_pictures.candidates, run, take=piece_choice.forcing(run))
    piece_choice.by_name(run)


def _unsureness(run: OpenRun) -> None:
    """Draw how unsure the model was at each step, with the choice of a measure."""
    with st.container(key=run.key("entropy_part"), gap="small"):
        labels = {name: measure.label for name, measure in step_pictures.MEASURES.items()}
        choices.choose(choices.field(run.slot, "unsure"), say("Measured over"), labels, bare=True)
        show(step_pictures.entropy, run, take=partial(session.move_to, run.slot))
