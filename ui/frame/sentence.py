"""The sentence with its controls: the stepper, as every page about a run shows it."""

from __future__ import annotations

import streamlit as st

from ui.components.stepper.stepper import stepper
from ui.runs.open_run import OpenRun
from ui.state import keys


def sentence(run: OpenRun, *, compact: bool = False) -> None:
    """Draw the source and the output with the controls of the step.

    Args:
        run: The run.
        compact: On little height, for pages that are about something else.
    """
    stepper(
        run.stepper,
        key=keys.STEPPER,
        step=run.view.step,
        step_revision=st.session_state.get(keys.STEP_REVISION, 0),
        covered=run.view.guess,
        revealed_step=run.view.step if run.view.guess and run.looking.revealed else None,
        compact=compact,
        on_step_change=_settled,
    )


def _settled() -> None:
    st.session_state.pop(keys.REVEALED, None)
    st.session_state[keys.LINK_NOTES] = ()
