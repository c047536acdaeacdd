"""The parts of the Step page: the sentence with its controls, candidates, results, attention, entropy."""

from __future__ import annotations

from functools import partial

from ui.runs.open_run import OpenRun
from ui.runs.show import show
from ui.shared import choices, style
from ui.shared.door import st
from ui.state import session
from ui.step import choosing, hiding, pictures, results
from words import say


def draw(run: OpenRun) -> None:
    """Draw all of them, below the sentence."""
    if not run.trace.n_steps:
        hiding.draw(run)
        return
    results.results(run)
    with st.container(key=run.key(style.STEP_GRID)):
        candidates(run)
        _unsureness(run)
        show(pictures.cross_row, run)
        show(pictures.cross_map, run)


def candidates(run: OpenRun) -> None:
    """Draw the most probable pieces of the step; in guess mode ask for a guess first."""
    if not run.view.guess:
        _candidate_chart(run)
        return
    with st.container(key=run.key(style.GUESSING)):
        if run.looking.covered:
            choosing.guess(run)
            results.branches(run)
        else:
            choosing.verdict(run)
            _candidate_chart(run)


def _candidate_chart(run: OpenRun) -> None:
    show(pictures.candidates, run, take=choosing.forcing(run))
    choosing.by_name(run)


def _unsureness(run: OpenRun) -> None:
    """Draw how unsure the model was at each step, with the choice of a measure."""
    with st.container(key=run.key("entropy_part"), gap="small"):
        labels = {name: measure.label for name, measure in pictures.MEASURES.items()}
        choices.choose(choices.field(run.slot, "unsure"), say("Measured over"), labels, bare=True)
        show(pictures.entropy, run, take=partial(session.move_to, run.slot))
