"""What a reader chooses between on the Step page: beam search's results, and the branches that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from transformer.errors import GlassformerError, QueryError
from transformer.runs.query import Sampling
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.runs.step_rows import HIDDEN, own_choice
from ui.server.work import BusyError
from ui.shared import cover, drawing
from ui.shared.door import st
from ui.state import session
from words import joined, say

RESULTS = "results"  # what a lesson may cover
RESULT_CHOICE = "result_choice"
BRANCH_CHOICE = "branch_choice"
NO_TEXT = say("(no text)")

_Output = tuple[tuple[int, ...], int]  # the forced pieces, and which result


def results(run: OpenRun) -> None:
    """List beam search's results, if any; one click shows another."""
    n = len(run.trace.hypotheses)
    if (n == 1 and run.view.guess) or not n or cover.covered(run.key(RESULTS)):
        return
    forced, hypothesis = run.trace.query.forced, run.trace.query.hypothesis
    found = {(forced, i): _hypothesis_label(run, i) for i in range(n)}
    _choose(run, RESULT_CHOICE, say("Results of beam search"), found, (forced, hypothesis))


def branches(run: OpenRun) -> None:
    """List the branches that were tried, if any: below where they are forced, so that they move nothing above."""
    if cover.covered(run.key(RESULTS)):
        return
    forced = run.trace.query.forced
    known = session.remember(run.slot, own_choice(run.trace.query), forced)
    texts = {one: _text_of(run, one) for one in ((), *known)}
    options = {
        (one, run.trace.query.hypothesis if one == forced else 0): joined(" ", [_branch_name(run, one), text])
        for one, text in texts.items()
        if text is not None
    }
    if len(options) > 1:
        _choose(run, BRANCH_CHOICE, say("Outputs"), options, (forced, run.trace.query.hypothesis))


def _choose(run: OpenRun, name: str, label: str, options: Mapping[_Output, str], here: _Output) -> None:
    slot, key = run.slot, run.key(name)
    st.session_state[key] = here

    def go() -> None:
        forced, hypothesis = st.session_state[key]
        session.show(slot, forced, hypothesis, max(len(forced) - 1, 0))

    st.radio(
        label,
        list(options),
        key=key,
        format_func=lambda option: options.get(option, ""),
        on_change=go,
        help=say("Force a candidate, and the output branches; each branch is listed under the candidates."),
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
