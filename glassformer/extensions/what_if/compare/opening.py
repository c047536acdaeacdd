"""Opens both runs of a comparison: the one of the address in the main slot, the other one beside it.

The address says the main slot and what the other run differs in. Where a run is compared with its control the main
slot is that of the changed run, which stands on the right; else it stands on the left.
"""

from dataclasses import dataclass, replace

from glassformer.extensions.what_if import comparing
from glassformer.extensions.what_if.compare import second_run
from glassformer.extensions.what_if.compare.pair import Pair
from glassformer.extensions.what_if.what_if_look import Compared
from glassformer.runs import loading
from glassformer.runs.open_run import OpenRun, Shown, open_run
from glassformer.server.work import BusyError
from glassformer.shared.door import st
from glassformer.state import nested, session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, SECOND
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError


def beside(main: OpenRun, compared: Compared) -> Pair[OpenRun] | None:
    """Open the second run, and draw what is to be said of it; None where there is none, which is said."""
    if stands_right(compared):
        control = _second(main.checkpoint, comparing.control_of(replace(main.link, view=main.view)), main, ())
        return None if control is None else Pair(compared, control, main)
    if compared == "changed":
        change = second_run.proposed(main)
        changed = replace(main.link, view=main.view, interventions=(change,), hypothesis=0, beside="")
        run = _second(main.checkpoint, changed, main, ())
        return None if run is None else Pair(compared, main, run)
    checkpoint = second_run.chosen(main, compared)
    if checkpoint is None:
        return None
    second, notes = comparing.second_of(replace(main.link, view=main.view))
    run = _second(checkpoint, second, main, notes)
    return None if run is None else Pair(compared, main, run)


def control(checkpoint: Checkpoint) -> OpenRun | None:
    """Open the control of what is asked for, where the changed run could not be done."""
    session.stand(SECOND, interventions=(), notes=())
    return open_run(checkpoint, slot=SECOND, link=comparing.control_of(session.asked()))


def stands_right(compared: Compared) -> bool:
    """Whether the run of the main slot stands on the right: a changed one, beside its control."""
    return compared == "changed" and bool(session.asked().interventions)


def _second(checkpoint: Checkpoint, link: Link, main: OpenRun, notes: tuple[str, ...]) -> OpenRun | None:
    """Open a run in the second slot, at the step of the first."""
    own = link.view.step if nested.STEP in second_run.differs_in() else session.view(SECOND).step
    session.stand(MAIN, beside=nested.without(session.standing(MAIN).beside, nested.STEP))
    n_own = _n_steps(checkpoint, link)
    step = step_beside(main.view.step, main.trace.n_steps, own, n_own)
    if session.view(SECOND).step != step:
        session.move_to(SECOND, step)
    link = replace(link, view=replace(link.view, step=step))
    session.stand(SECOND, view=link.view, interventions=(), notes=notes)
    st.session_state[f"{SECOND}{session.MODEL}"] = checkpoint.name  # which saved files say they are of
    return open_run(checkpoint, slot=SECOND, link=link)


def step_beside(step: int, n_steps: int, own: int, n_own: int) -> int:
    """Where a second run of `n_own` steps stands, which stood at `own`, beside one that stands at `step`, from 0."""
    ahead = step == n_steps - 1 and own > step  # behind the end of the first
    return max(min(own if ahead else step, n_own - 1), 0)


def _n_steps(checkpoint: Checkpoint, link: Link) -> int:
    """How many steps a run has; 0 where it cannot be done, which is said when it is opened."""
    most = min(link.max_new, checkpoint.config.max_len)
    try:
        query = replace(link, max_new=most).query(checkpoint.content_hash)
        return loading.runner().trace(checkpoint, query).n_steps
    except (GlassformerError, BusyError):
        return 0


@dataclass(frozen=True)
class ShownPair:
    """What the address says of two runs; it holds none."""

    main: Shown
    n_steps: int  # of the main slot's run
    n_second: int  # of the other one; 0 if there is none

    def publish(self, step: int = 0, *, carries: bool = True) -> None:
        """Write it for the steps that a session looks at: the main slot's run, and what the other one differs in."""
        step, own, beside = session.view(MAIN).step, session.view(SECOND).step, session.standing(MAIN).beside
        if self.n_second:
            ahead = step == self.n_steps - 1 and step < own < self.n_second
            beside = comparing.with_said(beside, step=str(own + 1) if ahead else None)
        replace(self.main, link=replace(self.main.link, beside=beside)).publish(step, carries=carries)


def shown(pair: Pair[OpenRun]) -> ShownPair:
    """The same for what comes later and must not hold the runs."""
    return ShownPair(pair.main.shown(), pair.main.trace.n_steps, pair.second.trace.n_steps)


def publish(main: OpenRun, pair: Pair[OpenRun] | None) -> None:
    """Write the address of what is shown."""
    (shown(pair) if pair else ShownPair(main.shown(), main.trace.n_steps, 0)).publish()
