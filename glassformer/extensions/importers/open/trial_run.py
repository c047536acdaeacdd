"""Trial run of an imported model on one sentence, and the ranking of answers by loss."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from glassformer.extensions.importers import third_party_models
from glassformer.extensions.importers.library.answer_ranking import POINTS_TO_THE_DOCTOR
from glassformer.extensions.importers.library.report import Field, ImportReport
from glassformer.runs import loading
from glassformer.runs.open_run import attempt
from glassformer.shared import drawing, pairs
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.runs.trace import Trace
from transformer.text.tokenizer import RawIds

TEXT: Final = "try_sentence"
MOST_NEW: Final = 48


def trying(entry: Entry) -> Checkpoint | None:
    """Draw the box for a sentence, and what the model makes of it; returns that, or None where it does not open."""
    st.subheader(say("Try a sentence"))
    checkpoint = attempt(lambda: third_party_models.open_foreign(entry, session.answers_of(entry.name)))
    if checkpoint is None:
        return None
    for warning in checkpoint.warnings:
        st.warning(drawing.plain(warning), icon=":material/warning:")
    text = st.text_input(
        say("Sentence"),
        key=TEXT,
        label_visibility="collapsed",
        placeholder=say("Type ids, such as 5 17 3, then press Enter")
        if isinstance(checkpoint.src_tokenizer, RawIds)
        else say("Type a text, then press Enter"),
    )
    if text.strip():
        trace = attempt(
            lambda: loading.runner().trace(
                checkpoint, checkpoint.query(text, max_new=min(MOST_NEW, checkpoint.config.max_len))
            )
        )
        if trace is not None:
            _result(checkpoint, trace)
    return checkpoint


def _result(checkpoint: Checkpoint, trace: Trace) -> None:
    drawing.notes(trace.notes)
    st.caption(drawing.plain(say("Read as: {pieces}", pieces=" ".join(trace.src_tokens))))
    parts = anatomy(checkpoint.config)
    if parts.fills:
        st.info(say("This model fills in hidden tokens. Hide a token on the page Translate."))
    elif not parts.writes:
        st.info(
            say(
                "This encoder-only model generates no output. The other pages show how the model processes the "
                "sentence."
            )
        )
    if not parts.writes:
        return
    with st.container(border=True):
        st.markdown(drawing.plain(trace.output_text) or say("The output is empty."))
    if trace.n_steps:
        said = [
            say(
                "The model gave the tokens of its output a mean probability of {probability:.3f} (geometric mean).",
                probability=float(np.exp(trace.log_prob / trace.n_steps)),
            ),
            say("If the output makes no sense or repeats one token again and again, one of the answers is wrong."),
        ]
        st.caption(drawing.plain(joined(" ", said)))


TEXTS, SCORED, SCORE = "score_texts", "scored_choices", "score_choices"


def scoring(entry: Entry, report: ImportReport) -> None:
    """Draw the box for texts, and try the choices on them when asked to."""
    with st.expander(say("Compare the choices with a few sentences"), expanded=bool(report.asked)):
        texts = pairs.box(key=TEXTS)
        said, is_empty = say("Compare the choices"), not texts.strip()
        with pressed(st.button, said, key=SCORE, about=entry.name, disabled=is_empty) as asked:
            if asked:
                _score(entry, report, texts)
        name, _, notes = st.session_state.get(SCORED) or ("", None, ())
        if name == entry.name:
            st.caption(drawing.plain(joined(" ", [note for note in notes if note != POINTS_TO_THE_DOCTOR])))
            if POINTS_TO_THE_DOCTOR in notes:
                st.warning(drawing.plain(POINTS_TO_THE_DOCTOR), icon=":material/stethoscope:")


def _score(entry: Entry, report: ImportReport, texts: str) -> None:
    bar = st.progress(0.0, text=say("Trying…"))

    def show(done: int, most: int) -> None:
        bar.progress(
            min(done / max(most, 1), 1.0), text=say("Tried {n} of at most {most} combinations", n=done, most=most)
        )

    found = attempt(
        lambda: third_party_models.scored(entry, session.answers_of(entry.name), report, pairs.with_tabs(texts), show)
    )
    bar.empty()
    if found is not None:
        st.session_state[pairs.CARRIED] = entry.name, texts
        st.session_state[SCORED] = entry.name, found, found.notes[len(report.notes) :]


def ranked(entry: Entry, report: ImportReport) -> ImportReport:
    """The report with its choices as they were ranked last, if they were."""
    kept: tuple[str, ImportReport, object] | None = st.session_state.get(SCORED)
    if kept is None or kept[0] != entry.name:
        return report
    scored = [one for one in kept[1].fields if any(choice.score is not None for choice in one.choices)]
    scores: Mapping[str, Field] = {one.name: one for one in scored}
    return replace(report, fields=tuple(_with_scores(one, scores.get(one.name)) for one in report.fields))


def _with_scores(field: Field, scored: Field | None) -> Field:
    if scored is None or field.how == "read":
        return field
    return replace(field, choices=scored.choices, evidence=scored.evidence)
