"""The parts of the Step page: the sentence with its controls, candidates, results, attention, entropy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import charts
from charts.bars import HOW_TO_READ_ATTENTION, HOW_TO_READ_CANDIDATES
from charts.curves import HOW_TO_READ as HOW_TO_READ_ENTROPY
from charts.following import follow_steps
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_MAP
from charts.heatmap import HOW_TO_READ_CLOSED
from transformer.errors import GlassformerError
from transformer.runs.query import Sampling
from ui.runs import loading
from ui.runs.looking import HIDDEN, Looking, branch_at, candidate_list, find_piece, judge, no_piece, own_choice
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, sides
from ui.runs.work import BusyError
from ui.shared import drawing, style
from ui.shared.clicks import on_click, place_of
from ui.shared.door import st
from ui.state import session
from words import joined, say

CANDIDATES = "candidates"
ENTROPY = "entropy"
CROSS_ROW = "cross_row"
CROSS_MAP = "cross_map"
RESULT_CHOICE = "result_choice"
FORCE_CHOICE = "force_choice"
GUESS_FORM = "guess_form"
GUESSED_PIECE = "guessed_piece"
NO_TEXT = say("(no text)")


def draw(run: OpenRun) -> None:
    """Draw all of them, below the sentence."""
    if not run.trace.n_steps:
        st.info(say("This model writes nothing, so there are no steps; the page Attention shows how it reads."))
        return
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
        title=say("Step {n}: candidates for the next piece", n=run.view.step + 1),
    )
    drawing.chart(
        figure,
        key=run.key(CANDIDATES),
        alt=say(
            "The most probable pieces after {read}, from {best} down; the output has {chosen}.",
            read=run.trace.row_label(run.looking.row).reads,
            best=listed.pieces[0],
            chosen=listed.pieces[listed.chosen or 0],
        ),
        how_to_read=HOW_TO_READ_CANDIDATES,
        on_click=on_click(run.key(CANDIDATES), place_of, _forcing(run)),
    )
    _force_by_name(run)


def _forcing(run: OpenRun) -> Callable[[int], None]:
    """Callback with a piece: branch off with it at the step, if it is another one than the output has.

    A session keeps its callbacks, so this one does not hold the run with all its maps.
    """
    slot, written, step = run.slot, run.trace.tgt_ids, run.view.step
    n_pieces, pad_id = len(run.trace.vocabulary), run.checkpoint.config.pad_id

    def force(piece_id: int) -> None:
        if not 0 <= piece_id < n_pieces or piece_id == written[step]:
            return
        if piece_id == pad_id:
            session.add_note(say("Padding is never written, so it cannot be forced. Choose another piece."), slot)
            return
        session.show(slot, branch_at(written, step, piece_id), 0, step)

    return force


def _force_by_name(run: OpenRun) -> None:
    slot, key, tokenizer, force = run.slot, run.key(FORCE_CHOICE), run.checkpoint.tgt_tokenizer, _forcing(run)
    log_probs = run.trace.log_probs[run.view.step].copy()

    def take() -> None:
        text = st.session_state.get(key) or ""
        i = find_piece(text, tokenizer, log_probs)
        if i is None and text.strip():
            session.add_note(no_piece(text.strip()[:40]), slot)
        elif i is not None:
            force(i)
        st.session_state[key] = ""

    st.text_input(
        say("Force another piece here"),
        key=key,
        on_change=take,
        placeholder=say("Click a bar above, or type a piece"),
        help=say(
            "The output goes on from that piece. Both outputs are then listed under the sentence, one click apart."
        ),
    )


def _guess(run: OpenRun) -> None:
    with st.form(run.key(GUESS_FORM), border=True):
        guess = st.text_input(say("What comes next? Your guess:"), key=run.key(GUESSED_PIECE))
        if st.form_submit_button(say("Reveal"), type="primary"):
            session.reveal(run.slot, run.stepper.run_id, run.view.step, guess)
            st.rerun()
    st.caption(say("The candidates appear when you press Reveal; an empty guess is fine."))


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
            name = [_branch_name(run, forced)] if forced else []
            found = range(len(run.trace.hypotheses))
            options |= {(forced, i): joined(" ", [*name, _hypothesis_label(run, i)]) for i in found}
        else:
            options[forced, 0] = joined(" ", [_branch_name(run, forced), _text_of(run, forced)])
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


def _text_of(run: OpenRun, forced: tuple[int, ...]) -> str:
    if run.view.guess:
        return ""
    try:
        trace = loading.runner().trace(run.checkpoint, replace(own_choice(run.trace.query), forced=forced))
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


def cross_row(run: OpenRun) -> None:
    """Draw where the current step looked: in the source, or in a decoder alone at all that it had read."""
    looking, n, whose = run.looking, run.view.step + 1, run.looking.whose()
    axes = sides(looking, looking.kind)
    weights = looking.weights()[: len(axes.queries), : len(axes.keys)]
    reads_source = looking.kind == "cross"
    figure = charts.attention_bar_spec(
        weights[looking.row],
        axes.keys,
        title=say("Step {n} looks at the source: {whose}", n=n, whose=whose)
        if reads_source
        else say("Step {n} looks at what it has read: {whose}", n=n, whose=whose),
        key_axis=axes.key_axis,
        allowed=run.trace.mask(looking.kind)[looking.row, : len(axes.keys)],
        mask_reason=_mask_reason(looking),
        largest=float(weights.max(initial=0)),
    )
    drawing.chart(
        figure,
        key=run.key(CROSS_ROW),
        alt=say("Cross-attention weights of step {n} over the source pieces, {whose}.", n=n, whose=whose)
        if reads_source
        else say("Self-attention weights of step {n} over the pieces read so far, {whose}.", n=n, whose=whose),
        how_to_read=HOW_TO_READ_ATTENTION,
    )


def cross_map(run: OpenRun) -> None:
    """Draw the same attention of all steps, the current one framed."""
    looking, whose = run.looking, run.looking.whose()
    axes = sides(looking, looking.kind)
    n_rows, n_columns = len(axes.queries), len(axes.keys)
    allowed = run.trace.mask(looking.kind)[:n_rows, :n_columns]
    figure = charts.heatmap_spec(
        looking.weights()[:n_rows, :n_columns],
        queries=axes.queries,
        keys=axes.keys,
        title=say("{kind}: {whose}", kind=KIND_NAMES[looking.kind], whose=whose),
        query_axis=axes.query_axis,
        key_axis=axes.key_axis,
        allowed=allowed,
        mask_reason=_mask_reason(looking),
        colour=axes.key_side,
    )
    rows = [run.trace.row_of(step) for step in range(looking.n_steps)]
    follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
    alt = say("Cross-attention weights, one row a decoding step, one column a source piece, {whose}.", whose=whose)
    if looking.kind != "cross":
        alt = say("Self-attention weights, one row and one column a piece that was read, {whose}.", whose=whose)
    drawing.chart(
        figure,
        key=run.key(CROSS_MAP),
        alt=alt,
        how_to_read=HOW_TO_READ_MAP if allowed.all() else joined(" ", [HOW_TO_READ_MAP, HOW_TO_READ_CLOSED]),
    )


def _mask_reason(looking: Looking) -> str:
    return say("padding") if looking.kind == "cross" else say("comes later")


def entropy(run: OpenRun) -> None:
    """Draw how unsure the model was at each step."""
    n_steps = run.looking.n_steps - int(run.looking.covered)
    key = run.key(ENTROPY)
    figure = charts.entropy_spec(
        run.trace.entropies()[:n_steps].tolist(),
        run.looking.row_labels()[run.trace.first_row :][:n_steps],
        step=run.view.step if run.view.step < n_steps else None,
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("Entropy of the next-piece distribution at each step, in bits."),
        how_to_read=HOW_TO_READ_ENTROPY,
        on_click=on_click(key, place_of, partial(session.move_to, run.slot)),
    )
