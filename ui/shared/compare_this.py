"""What "Compare this" leads to, the link in the menu beside a run: Compare, with what is looked at now.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ui.state import nested
from ui.state.comparing import comparing
from ui.state.link import Link

HEADS: Final = "attention"  # the page on which a head that was chosen is what is looked at


def of_what_is_looked_at(link: Link, page: str) -> Link:
    """What is compared: a changed run with its control, a branch with the model's own choice, a head with another.

    The link is as the page publishes it. Where there is none of these, Compare leads on itself.
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
