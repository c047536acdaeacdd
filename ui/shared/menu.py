"""The menu of pages in the sidebar: links that carry the whole address of what is looked at.

Streamlit's own menu leads to a page's bare path, to which the page then adds its parameters: two entries of the
browser's history, of which the first means the defaults to whoever goes back to it. A link of ours says at once what
the page will say, so one click is one entry, and a new tab opens with everything kept.

A step runs a fragment, and the sidebar stands outside. So the place of the menu is kept, and whoever publishes an
address fills it again. It is one element, as a link of Streamlit's for each page would cost a step a quarter of its
time; `common/links.js` has a click open the page in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.shared.door import here, st
from ui.state import apart, session
from ui.state.link import Link, write_link
from words import say

NAME: Final = "Glassformer"
COMPARE: Final = "compare"  # the path of a page that has a second link, to what is looked at compared
MENU: Final = "menu"  # in the session, and the key of the menu's block


@dataclass(frozen=True)
class Menu:
    """The menu of a run.

    Attributes:
        pages: The pages of each section.
        current: The path of the one that is shown.
        place: Where it stands.
    """

    pages: Mapping[str, list[StreamlitPage]]
    current: str
    place: Any


def begin(pages: Mapping[str, list[StreamlitPage]], current: str) -> None:
    """Draw the menu; call it before the page runs.

    Args:
        pages: The pages of each section; hidden ones are not drawn.
        current: The path of the one that is shown.
    """
    with st.sidebar.container(key=MENU, gap=None):
        st.header(NAME, anchor=False)
        menu = Menu(pages, current, st.empty())
    st.session_state[MENU] = menu
    _draw(menu, session.linked(), session.linked())


def carry(link: Link, *, compare: Link | None = None) -> None:
    """Have the links lead to what is looked at now.

    Args:
        link: As this page publishes it. A cell is one of this page's own map, so links to others leave it out; a file
            of sentences is not for whoever gets a link to a sentence of it.
        compare: Where "Compare this" leads; None where there is nothing to compare, as no run is shown.
    """
    there = write_link(replace(link, job="", view=replace(link.view, query=None, key=None)))
    session.link_to(there)
    menu: Menu | None = st.session_state.get(MENU)
    if menu is not None:
        _draw(menu, there, write_link(link), compare)


def link(path: str, label: str, leads_to: Link, *, icon: str | None = None) -> None:
    """Draw a link to a page.

    Args:
        path: Of the page.
        label: What it says.
        leads_to: What the page shall show.
        icon: Before the label.
    """
    menu: Menu | None = st.session_state.get(MENU)
    pages = [page for found in menu.pages.values() for page in found] if menu else []
    page = next((page for page in pages if page.url_path == path), None)
    if page is None:
        st.markdown(label)  # a page alone, as tests run it, has no others
        return
    st.page_link(page, label=label, icon=icon, query_params=apart.beside(write_link(leads_to)))


def current() -> str:
    """The path of the page that is shown; "" for a page alone, as tests run it."""
    menu: Menu | None = st.session_state.get(MENU)
    return menu.current if menu else ""


def href(path: str, leads_to: Link) -> str:
    """The address of a page behind the app's own.

    Args:
        path: Of the page.
        leads_to: What the page shall show.
    """
    return hrefs([(path, leads_to)])[0]


def hrefs(places: Sequence[tuple[str, Link]]) -> list[str]:
    """The addresses of pages behind the app's own.

    Args:
        places: Of each the path of the page, and what it shall show.
    """
    beside = apart.beside({})  # what a session says of each, looked up once
    return [path + _query(write_link(leads_to) | beside) for path, leads_to in places]


def ways(links: Sequence[tuple[str, str, dict[str, str]]]) -> None:
    """Draw links of a lesson in a row, which `common/links.js` follows in place as it does those of the menu.

    A page link of Streamlit's to the page that is shown leaves the address bar as it was.

    Args:
        links: Of each the path of a page, what it says, and the parameters of the address but for the language.
    """
    lines = [
        f'<a href="{escape(path + _query(apart.beside(said)))}">{escape(here(label))}</a>'
        for path, label, said in links
    ]
    st.html(f'<nav class="gf-ways">{"".join(lines)}</nav>', width="content")


def _query(parameters: dict[str, str]) -> str:
    """What follows the path of a page."""
    return f"?{urlencode(parameters)}" if parameters else ""


def _draw(menu: Menu, elsewhere: dict[str, str], again: dict[str, str], compare: Link | None = None) -> None:
    beside, lines = apart.beside({}), list[str]()
    there, here_again = escape(_query(elsewhere | beside)), escape(_query(again | beside))
    for section, pages in menu.pages.items():
        lines.append(f"<p>{escape(here(section))}</p>")
        for page in pages:
            if page.visibility != "hidden":
                current = page.url_path == menu.current
                leads_to = page.url_path + (here_again if current else there)
                mark = ' aria-current="page"' if current else ""
                lines.append(f'<a href="{leads_to}"{mark}>{escape(page.title)}</a>')
                if page.url_path == COMPARE and not current and compare is not None:
                    said = escape(here(say("Compare this")))
                    lines.append(f'<a class="gf-this" href="{escape(href(COMPARE, compare))}">{said}</a>')
    with _as_for_all_pages():
        menu.place.html(f"<nav>{''.join(lines)}</nav>")


def _as_for_all_pages() -> AbstractContextManager[None]:
    """What the script of all pages has drawn stays while another page opens; what a page has drawn goes first."""
    context = get_script_run_ctx()
    return nullcontext() if context is None else context.run_with_active_hash(context.pages_manager.main_script_hash)
