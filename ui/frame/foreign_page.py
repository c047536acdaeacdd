"""A model of another program where a page wants a checkpoint: the way to the page that asks questions."""

from dataclasses import replace
from typing import Final, NoReturn

from transformer.checkpoint.listing import Entry
from ui.frame.source_box import head
from ui.shared import drawing, menu
from ui.shared.door import st
from ui.state import session
from ui.state.link import Link
from words import say, say_n

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
    publish()
    st.stop()


def publish() -> None:
    """Write the address of a page that has opened nothing, and have the menu lead on with what is chosen."""
    link = replace(session.asked(), revision="")
    own, bare = session.left_out()
    plain = replace(link, model="")
    if link.model == bare and not link.answers and (own == bare or plain == Link()):
        link = plain
    session.publish(link)
    menu.carry(link)
