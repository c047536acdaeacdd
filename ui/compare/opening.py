"""Opens both runs of a comparison: the one of the address in the main slot, the other one beside it.

The address says the main slot and what the other run differs in. Where a run is compared with its control the main
slot is that of the changed run, which stands on the right; else it stands on the left.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from ui.compare import choosing
from ui.compare.pair import Pair
from ui.compare.steps import step_beside
from ui.runs import loading
from ui.runs.open_run import OpenRun, open_run
from ui.runs.work import BusyError
from ui.state import comparing, nested, session
from ui.state.link import Link
from ui.state.view import MAIN, SECOND, Compared

Place = AbstractContextManager[object]


def opened(checkpoint: Checkpoint, compared: Compared, left: Place, right: Place) -> Pair | OpenRun | None:
    """Open both runs, and draw in their columns what is to be said of each.

    Args:
        checkpoint: That of the main slot.
        compared: What is compared.
        left, right: The columns.

    Returns:
        Both; the main slot's alone where there is no second one, which its column then says; None without either.
    """
    if compared == "changed" and session.asked().interventions:
        with right:
            main = open_run(checkpoint)
        if main is None or main.earlier:
            return main
        with left:
            control = _second(checkpoint, comparing.control_of(replace(main.link, view=main.view)), main, ())
        return main if control is None else Pair(compared, control, main)
    with left:
        main = open_run(checkpoint)
    if main is None or main.earlier:
        return main
    with right:
        other = choosing.chosen(main, compared)
        if other is None:
            return main
        second, notes = comparing.second_of(replace(main.link, view=main.view))
        run = _second(other, second, main, notes)
    return main if run is None else Pair(compared, main, run)


def _second(checkpoint: Checkpoint, link: Link, main: OpenRun, notes: tuple[str, ...]) -> OpenRun | None:
    """Open a run in the second slot, at the step of the first."""
    said = nested.read(session.standing(MAIN).beside) or {}
    own = link.view.step if nested.STEP in said else session.view(SECOND).step
    session.stand(MAIN, beside=nested.without(session.standing(MAIN).beside, nested.STEP))
    n_own = _n_steps(checkpoint, link)
    step = step_beside(main.view.step, main.trace.n_steps, own, n_own)
    if session.view(SECOND).step != step:
        session.move_to(SECOND, step)
    link = replace(link, view=replace(link.view, step=step))
    session.stand(SECOND, view=link.view, interventions=(), notes=notes)
    return open_run(checkpoint, slot=SECOND, link=link)


def _n_steps(checkpoint: Checkpoint, link: Link) -> int:
    """How many steps a run has; 0 where it cannot be done, which is said when it is opened."""
    most = min(link.max_new, checkpoint.config.max_len)
    try:
        query = replace(link, max_new=most).query(checkpoint.content_hash)
        return loading.runner().trace(checkpoint, query).n_steps
    except (GlassformerError, BusyError):
        return 0


def publish(found: Pair | OpenRun) -> None:
    """Write the address: the main slot's run, and what the other one differs in.

    Args:
        found: What `opened` gave.
    """
    main = found.main if isinstance(found, Pair) else found
    beside = session.standing(MAIN).beside
    if isinstance(found, Pair):
        other = found.right if main is found.left else found.left
        ahead = step_beside(main.view.step, main.trace.n_steps, 0, other.trace.n_steps) != other.view.step
        beside = comparing.with_said(beside, step=str(other.view.step + 1) if ahead else None)
    replace(main, link=replace(main.link, beside=beside)).publish()
