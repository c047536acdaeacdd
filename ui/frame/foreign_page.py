"""A model of another program where a page wants a checkpoint: opened, or the way to the page that asks questions."""

from dataclasses import replace
from typing import Final, NoReturn

from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.importers.opening import QuestionsError
from ui.frame.source_box import head
from ui.runs import foreign_models
from ui.runs.open_run import publish_unopened
from ui.shared import drawing, menu
from ui.shared.door import st
from ui.state import session
from words import say, say_n

PAGE: Final = "open"
MORE: Final = ":material/quiz:"


def open_foreign(entry: Entry, title: str) -> Checkpoint:
    """Open a model of another program with the answers of the session; stops the page where they are not enough.

    Raises `CheckpointError`: it cannot be opened, whatever is answered.
    """
    try:
        return foreign_models.open_foreign(entry, session.answers_of(entry.name))
    except QuestionsError as error:
        _ask(entry, title, len(error.report.asked))


def _ask(entry: Entry, title: str, asked: int) -> NoReturn:
    if title:
        head(title)
    said = say_n(
        "“{name}” cannot be opened until you answer {n} question about the model.",
        "“{name}” cannot be opened until you answer {n} questions about the model.",
        asked,
        name=entry.title,
    )
    st.info(drawing.plain(said), icon=MORE)
    menu.link(PAGE, say("Answer the questions"), replace(session.asked(), revision=""), icon=MORE)
    publish_unopened()
    st.stop()
