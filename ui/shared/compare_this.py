"""The link "Compare this" in the first row of a page with a run: it leads to Compare with what is looked at now.

A step runs a fragment, and the row stands outside. So the place of the link is kept, and whoever publishes an address
fills it again, as with the menu of pages.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Final

from ui.shared import menu
from ui.shared.door import here, st
from ui.state import nested
from ui.state.comparing import comparing
from ui.state.link import Link
from words import say

PAGE: Final = "compare"
PLACE: Final = "compare_this"  # in the session, and the key of the link's block
HEADS: Final = "attention"  # the page on which a head that was chosen is what is looked at


def begin() -> None:
    """Keep a place for the link, here in the row that is being drawn; on the page Compare itself there is none."""
    st.session_state.pop(PLACE, None)
    current = menu.current()
    if current and current != PAGE:
        # A block, not `st.empty`: of a block Streamlit knows which fragment made it, and lets inner ones write there.
        st.session_state[PLACE] = current, st.container(key=PLACE, width="content")


def carry(link: Link) -> None:
    """Have the link lead to what is looked at now.

    Args:
        link: As the page publishes it.
    """
    kept = st.session_state.get(PLACE)
    if kept is None:
        return
    page, place = kept
    address = escape(menu.href(PAGE, of_what_is_looked_at(link, page)))
    said = escape(here(say("Compare this")))
    place.html(f'<a href="{address}">{said}</a>')


def of_what_is_looked_at(link: Link, page: str) -> Link:
    """What is compared: a changed run with its control, a branch with the model's own choice, a head with another.

    Args:
        link: As the page publishes it.
        page: The path of the page.

    Returns:
        The link to the page Compare; where there is none of these, Compare leads on itself.
    """
    link = replace(link, job="", beside="", view=replace(link.view, query=None, key=None, compared="auto"))
    if link.interventions:
        return comparing(link)
    if link.forced:
        return comparing(replace(link, forced=(), hypothesis=0), with_=link)
    if page == HEADS and link.view.layer is not None and link.view.head is not None:
        said = {"kind": link.view.kind, "layer": str(link.view.layer + 1), "head": str(link.view.head + 1)}
        return replace(link, beside=nested.write(said), view=replace(link.view, compared="heads"))
    return link
