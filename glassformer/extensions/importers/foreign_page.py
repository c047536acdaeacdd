"""A model of another program where a page wants a checkpoint: the way to the page that asks questions."""

from dataclasses import replace
from typing import Final, NoReturn

from glassformer.frame.source_box import head
from glassformer.runs.open_run import publish_unopened
from glassformer.shared import drawing, menu
from glassformer.shared.door import st
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.i18n import say, say_n

PAGE: Final = "open"
MORE: Final = ":material/quiz:"


def ask(entry: Entry, title: str, asked: int) -> NoReturn:
    """Say how many questions have to be answered first, and lead to them; stops the page."""
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
