"""The choices of what is asked, tried on a few texts of the reader's and ranked by the loss with each."""

from collections.abc import Mapping
from dataclasses import replace

from glassformer.extensions.importers import foreign_models
from glassformer.extensions.importers.library.candidates import POINTS_TO_THE_DOCTOR
from glassformer.extensions.importers.library.report import Field, ImportReport
from glassformer.runs.attempt import attempt
from glassformer.shared import drawing, pairs
from glassformer.shared.clicks import pressed
from glassformer.shared.door import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.i18n import joined, say

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
        lambda: foreign_models.scored(entry, session.answers_of(entry.name), report, pairs.with_tabs(texts), show)
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
