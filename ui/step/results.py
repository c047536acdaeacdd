"""What a reader chooses between on the Step page: the branches that were tried, or beam search's results."""

from __future__ import annotations

from dataclasses import replace

from transformer.errors import GlassformerError, QueryError
from transformer.runs.query import Sampling
from ui.runs import loading
from ui.runs.looking import HIDDEN, own_choice
from ui.runs.open_run import OpenRun
from ui.server.work import BusyError
from ui.shared import cover, drawing
from ui.shared.door import st
from ui.state import session, tried
from words import joined, say

RESULTS = "results"  # what a lesson may cover
RESULT_CHOICE = "result_choice"
NO_TEXT = say("(no text)")


def results(run: OpenRun) -> None:
    """List the branches that were tried, if any, or beam search's results; one click shows another."""
    if cover.covered(run.key(RESULTS)):
        return
    base = own_choice(run.trace.query)
    known = tried.remember(run.slot, base, run.trace.query.forced)
    here = (run.trace.query.forced, run.trace.query.hypothesis)
    options: dict[tuple[tuple[int, ...], int], str] = {}
    for forced in ((), *known):
        if forced == here[0] and run.trace.hypotheses:
            name = [_branch_name(run, forced)] if forced else []
            found = range(len(run.trace.hypotheses))
            options |= {(forced, i): joined(" ", [*name, _hypothesis_label(run, i)]) for i in found}
        elif (text := _text_of(run, forced)) is not None:
            options[forced, 0] = joined(" ", [_branch_name(run, forced), text])
    if len(options) == 1 and (run.view.guess or not run.trace.hypotheses):
        return  # there is nothing to choose, and the text stands above
    slot, key = run.slot, run.key(RESULT_CHOICE)
    st.session_state[key] = here

    def go() -> None:
        forced, hypothesis = st.session_state[key]
        session.show(slot, forced, hypothesis, max(len(forced) - 1, 0))

    st.radio(
        say("Results of beam search") if run.trace.hypotheses else say("Outputs"),
        list(options),
        key=key,
        format_func=lambda option: options.get(option, ""),
        on_change=go,
        help=say("Force a candidate below, and the output branches; each branch is listed here."),
    )


def _text_of(run: OpenRun, forced: tuple[int, ...]) -> str | None:
    """What a branch says; None for one that there cannot be, as an address may say anything."""
    if max(forced, default=0) >= len(run.trace.vocabulary):
        return None
    if run.view.guess:
        return ""
    try:
        trace = loading.runner().trace(run.checkpoint, replace(own_choice(run.trace.query), forced=forced))
    except QueryError:
        return None
    except (GlassformerError, BusyError):  # there is enough to see without it
        return ""
    return drawing.plain(trace.output_text) or NO_TEXT


def _branch_name(run: OpenRun, forced: tuple[int, ...]) -> str:
    """How a branch is called: by the last piece that was forced."""
    if not forced:
        drawn = isinstance(run.trace.query.decoding, Sampling)
        return say("**As it was drawn**") if drawn else say("**Model's own choice**")
    last = len(forced) - 1
    seen = run.looking.n_steps - int(run.looking.covered)
    piece = drawing.plain(run.trace.vocabulary[forced[-1]]) if last < seen else HIDDEN
    return say("**Step {n}: {piece}**", n=last + 1, piece=piece)


def _hypothesis_label(run: OpenRun, index: int) -> str:
    found = run.trace.hypotheses[index]
    return say(
        "**{n}.** {text} (log-probability {log_prob:.2f}, score {score:.2f})",
        n=index + 1,
        text="" if run.view.guess else drawing.plain(found.text) or NO_TEXT,
        log_prob=found.log_prob,
        score=found.score,
    )
