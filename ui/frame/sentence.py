"""The sentence with its controls: the stepper, as every page about a run shows it."""

from __future__ import annotations

from functools import partial

from ui.components.stepper.stepper import stepper
from ui.runs.open_run import OpenRun
from ui.state import session


def sentence(run: OpenRun, *, compact: bool = False) -> None:
    """Draw the source and the output with the controls of the step.

    Args:
        run: The run.
        compact: On little height, for pages that are about something else.
    """
    stepper(
        run.stepper,
        key=run.key(session.STEPPER),
        step=run.view.step,
        step_revision=session.standing(run.slot).step_revision,
        covered=run.view.guess,
        revealed_step=run.view.step if run.view.guess and run.looking.revealed else None,
        compact=compact,
        on_step_change=partial(session.settled, run.slot),
    )
