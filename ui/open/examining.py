"""What an import makes of a file or folder with the answers of the session."""

from __future__ import annotations

from charts.theme import capitalised
from transformer.checkpoint.listing import Entry
from transformer.errors import CheckpointError
from transformer.importers.report import ImportReport
from ui.open.questions import forget, half_chosen
from ui.runs import foreign_models
from ui.runs.attempt import attempt
from ui.shared import drawing
from ui.shared.door import st
from ui.state import answered
from ui.state.answers import Answers, without
from words import say


def examined(entry: Entry) -> ImportReport | None:
    """The report; without the answers where they are impossible, which is then said.

    Returns:
        The report; None if the thing cannot be read.
    """
    given = answered.of(entry.name)
    with st.spinner(say("Looking into “{name}”…", name=drawing.plain(entry.title))):
        if not given:
            found = attempt(lambda: foreign_models.preview(entry))
            return None if found is None else found.report
        try:
            return _with(entry, given)
        except CheckpointError as error:
            st.error(drawing.plain(capitalised(error.sentence)))
            bare = attempt(lambda: foreign_models.preview(entry))
    if bare is None:
        return None
    st.caption(say("What follows is what the files say without your answers."))
    forget(entry, key="forget_impossible")
    return bare.report


def _with(entry: Entry, given: Answers) -> ImportReport:
    """The report with the answers; a tokenizer of one side waits for the other, and nothing is wrong yet."""
    half = half_chosen(entry.name)
    try:
        return foreign_models.preview(entry, given).report
    except CheckpointError:
        if half is None:
            raise
        return foreign_models.preview(entry, without(given, half[0])).report
