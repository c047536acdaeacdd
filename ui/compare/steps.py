"""One stepper moves both runs: they stand at the same step, and where one is shorter it stands at its end.

The buttons stand at the longer run, so that they reach every step of both; of two alike at the run of the main slot.
"""

from __future__ import annotations

from functools import partial

from ui.compare.pair import Pair
from ui.frame.sentence_stepper import sentence
from ui.runs.open_run import OpenRun
from ui.shared.door import st
from ui.state import session
from ui.state.view import Slot
from words import say_n


def step_beside(step: int, n_steps: int, own: int, n_own: int) -> int:
    """Where the second run stands, from 0.

    Args:
        step: Where the first one stands.
        n_steps: How many steps the first one has.
        own: Where the second one stood.
        n_own: How many steps it has.
    """
    ahead = step == n_steps - 1 and own > step  # behind the end of the first
    return max(min(own if ahead else step, n_own - 1), 0)


def steppers(pair: Pair, run: OpenRun) -> None:
    """Draw the pieces of one of the two, with the buttons if it is the one that leads; its steps move the other."""
    other = pair.right if run is pair.left else pair.left
    second = pair.right if pair.main is pair.left else pair.left
    leads = second if second.trace.n_steps > pair.main.trace.n_steps else pair.main
    sentence(
        run, compact=True, led=run is not leads, moved=partial(_follow, run.slot, other.slot, other.trace.n_steps - 1)
    )
    if 0 < run.trace.n_steps <= other.view.step:
        st.caption(
            say_n(
                "This output has {n} piece, so it stands at its end while the other goes on.",
                "This output has {n} pieces, so it stands at its end while the other goes on.",
                run.trace.n_steps,
            )
        )


def _follow(moved: Slot, follows: Slot, last: int) -> None:
    """Callback: the reader has come to rest on another step of one run."""
    report = st.session_state.get(f"{moved}{session.STEPPER}")
    step = report["step"]["step"] if isinstance(report, dict) and isinstance(report.get("step"), dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        return
    session.replace(moved, step=step)
    if session.view(follows).step != (there := max(min(step, last), 0)):
        session.move_to(follows, there)
