"""The parts of the Step page: the sentence with its controls, candidates, results, attention, entropy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

import charts
from charts.bars import HOW_TO_READ_ATTENTION, HOW_TO_READ_CANDIDATES
from charts.curves import HOW_TO_READ as HOW_TO_READ_ENTROPY
from charts.following import follow_steps
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from charts.heatmap import HOW_TO_READ_CLOSED
from transformer.errors import GlassformerError
from transformer.runs.query import Sampling
from ui.runs import loading
from ui.runs.looking import HIDDEN, branch_at, candidate_list, find_piece, judge, own_choice
from ui.runs.open_run import OpenRun
from ui.runs.sides import SOURCE_COLUMNS, TARGET_ROWS
from ui.runs.work import BusyError
from ui.shared import drawing, style
from ui.shared.clicks import on_click, place_of
from ui.state import session
from ui.state.view import Slot

CANDIDATES = "candidates"
ENTROPY = "entropy"
CROSS_ROW = "cross_row"
CROSS_MAP = "cross_map"
RESULT_CHOICE = "result_choice"
FORCE_CHOICE = "force_choice"
GUESS_FORM = "guess_form"
GUESSED_PIECE = "guessed_piece"


def draw(run: OpenRun) -> None:
    """Draw all of them, below the sentence."""
    results(run)
    with st.container(key=run.key(style.STEP_GRID)):
        candidates(run)
        entropy(run)
        cross_row(run)
        cross_map(run)


def candidates(run: OpenRun) -> None:
    """Draw the most probable pieces of the step; in guess mode ask for a guess first."""
    if not run.view.guess:
        _candidate_chart(run)
        return
    with st.container(key=run.key(style.GUESSING)):
        if run.looking.covered:
            _guess(run)
        else:
            _verdict(run)
            _candidate_chart(run)


def _candidate_chart(run: OpenRun) -> None:
    listed = candidate_list(run.looking)
    figure = charts.candidates_spec(
        listed.pieces,
        listed.probabilities,
        ids=listed.ids,
        chosen=listed.chosen,
        ranks=listed.ranks,
        kept=listed.kept,
        how_chosen=listed.how_chosen,
        title=f"Step {run.view.step + 1}: candidates for the next piece",
    )
    drawing.chart(
        figure,
        key=run.key(CANDIDATES),
        alt=f"The most probable pieces after {run.trace.row_label(run.view.step).reads}, "
        f"from {listed.pieces[0]} down; the output has {listed.pieces[listed.chosen or 0]}.",
        how_to_read=HOW_TO_READ_CANDIDATES,
        on_click=on_click(run.key(CANDIDATES), place_of, _branching(run).force),
    )
    _force_by_name(run)


@dataclass(frozen=True)
class _Branching:
    """What forcing a piece needs. A session keeps its callbacks: they must not hold the run with all its maps."""

    slot: Slot
    written: tuple[int, ...]
    step: int
    n_pieces: int
    pad_id: int

    def force(self, piece_id: int) -> None:
        """Branch off with this piece at the step, if it is another one than the output has."""
        if not 0 <= piece_id < self.n_pieces or piece_id == self.written[self.step]:
            return
        if piece_id == self.pad_id:
            session.add_note("Padding is never written, so it cannot be forced. Choose another piece.", self.slot)
            return
        session.show(self.slot, branch_at(self.written, self.step, piece_id), 0, self.step)


def _branching(run: OpenRun) -> _Branching:
    trace = run.trace
    pad_id = run.checkpoint.config.pad_id
    return _Branching(run.slot, trace.tgt_ids, run.view.step, len(trace.vocabulary), pad_id)


def _force_by_name(run: OpenRun) -> None:
    branching, tokenizer = _branching(run), run.checkpoint.tgt_tokenizer
    log_probs, key = run.trace.log_probs[run.view.step].copy(), run.key(FORCE_CHOICE)

    def force() -> None:
        text = st.session_state.get(key) or ""
        i = find_piece(text, tokenizer, log_probs)
        if i is None and text.strip():
            session.add_note(f"“{text.strip()[:40]}” is not one piece of this model's vocabulary.", branching.slot)
        elif i is not None:
            branching.force(i)
        st.session_state[key] = ""

    st.text_input(
        "Force another piece here",
        key=key,
        on_change=force,
        placeholder="Click a bar above, or type a piece",
        help="The output goes on from that piece. Both outputs are then listed under the sentence, one click apart.",
    )


def _guess(run: OpenRun) -> None:
    with st.form(run.key(GUESS_FORM), border=True):
        guess = st.text_input("What comes next? Your guess:", key=run.key(GUESSED_PIECE))
        if st.form_submit_button("Reveal", type="primary"):
            session.reveal(run.slot, run.stepper.run_id, run.view.step, guess)
            st.rerun()
    st.caption("The candidates appear when you press Reveal; an empty guess is fine.")


def _verdict(run: OpenRun) -> None:
    guess = session.standing(run.slot).guess
    if guess.strip():
        st.success(drawing.plain(judge(guess, run.looking, run.checkpoint.tgt_tokenizer)))


def results(run: OpenRun) -> None:
    """List the branches that were tried, if any, or beam search's results; one click shows another."""
    base = own_choice(run.trace.query)
    tried = session.remember_branch(run.slot, base, run.trace.query.forced)
    here = (run.trace.query.forced, run.trace.query.hypothesis)
    options: dict[tuple[tuple[int, ...], int], str] = {}
    for forced in ((), *tried):
        if forced == here[0] and run.trace.hypotheses:
            name = f"{_branch_name(run, forced)} " if forced else ""
            found = range(len(run.trace.hypotheses))
            options |= {(forced, i): f"{name}{_hypothesis_label(run, i)}" for i in found}
        else:
            options[forced, 0] = f"{_branch_name(run, forced)} {_text_of(run, forced)}"
    if len(options) == 1 and (run.view.guess or not run.trace.hypotheses):
        return  # there is nothing to choose, and the text stands above
    slot, key = run.slot, run.key(RESULT_CHOICE)
    st.session_state[key] = here

    def go() -> None:
        forced, hypothesis = st.session_state[key]
        session.show(slot, forced, hypothesis, max(len(forced) - 1, 0))

    st.radio(
        "Results of beam search" if run.trace.hypotheses else "Outputs",
        list(options),
        key=key,
        format_func=lambda option: options.get(option, ""),
        on_change=go,
        help="Force a candidate below, and the output branches; each branch is listed here.",
    )


def _text_of(run: OpenRun, forced: tuple[int, ...]) -> str:
    if run.view.guess:
        return ""
    try:
        trace = loading.runner().trace(run.checkpoint, replace(own_choice(run.trace.query), forced=forced))
    except (GlassformerError, BusyError):  # there is enough to see without it
        return ""
    return drawing.plain(trace.output_text) or "(no text)"


def _branch_name(run: OpenRun, forced: tuple[int, ...]) -> str:
    """How a branch is called: by the last piece that was forced."""
    if not forced:
        drawn = isinstance(run.trace.query.decoding, Sampling)
        return "**As it was drawn**" if drawn else "**Model's own choice**"
    last = len(forced) - 1
    seen = run.looking.n_rows - int(run.looking.covered)
    return f"**Step {last + 1}: {drawing.plain(run.trace.vocabulary[forced[-1]]) if last < seen else HIDDEN}**"


def _hypothesis_label(run: OpenRun, index: int) -> str:
    found = run.trace.hypotheses[index]
    text = "" if run.view.guess else drawing.plain(found.text) or "(no text)"
    return f"**{index + 1}.** {text} (log-probability {found.log_prob:.2f}, score {found.score:.2f})"


def cross_row(run: OpenRun) -> None:
    """Draw where the current step looked in the source."""
    looking, step = run.looking, run.view.step
    figure = charts.attention_bar_spec(
        looking.cross_weights()[step],
        list(run.trace.src_pieces),
        title=f"Step {step + 1} looks at the source: {looking.cross_label()}",
        key_axis=SOURCE_COLUMNS,
        allowed=run.trace.cross_mask[step],
        mask_reason="padding",
        largest=float(looking.cross_weights()[: looking.n_rows].max(initial=0)),
    )
    drawing.chart(
        figure,
        key=run.key(CROSS_ROW),
        alt=f"Cross-attention weights of step {step + 1} over the source pieces, {looking.cross_label()}.",
        how_to_read=HOW_TO_READ_ATTENTION,
    )


def cross_map(run: OpenRun) -> None:
    """Draw the cross-attention of all steps, the current one framed."""
    looking, n_rows = run.looking, run.looking.n_rows
    allowed = run.trace.cross_mask[:n_rows]
    figure = charts.heatmap_spec(
        looking.cross_weights()[:n_rows],
        queries=looking.row_labels(),
        keys=list(run.trace.src_pieces),
        title=f"Cross-attention: {looking.cross_label()}",
        query_axis=TARGET_ROWS,
        key_axis=SOURCE_COLUMNS,
        allowed=allowed,
        mask_reason="padding",
        colour="source",
    )
    follow_steps(figure, range(n_rows), n_rows=n_rows, n_columns=len(run.trace.src_pieces))
    drawing.chart(
        figure,
        key=run.key(CROSS_MAP),
        alt=f"Cross-attention weights, one row a decoding step, one column a source piece, {looking.cross_label()}.",
        how_to_read=HOW_TO_READ_MAP if allowed.all() else f"{HOW_TO_READ_MAP} {HOW_TO_READ_CLOSED}",
    )


def entropy(run: OpenRun) -> None:
    """Draw how unsure the model was at each step."""
    n_rows = run.looking.n_rows - int(run.looking.covered)
    key = run.key(ENTROPY)
    figure = charts.entropy_spec(
        run.trace.entropies()[:n_rows].tolist(),
        run.looking.row_labels()[:n_rows],
        step=run.view.step if run.view.step < n_rows else None,
    )
    drawing.chart(
        figure,
        key=key,
        alt="Entropy of the next-piece distribution at each step, in bits.",
        how_to_read=HOW_TO_READ_ENTROPY,
        on_click=on_click(key, place_of, partial(session.move_to, run.slot)),
    )
