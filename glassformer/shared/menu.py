"""The top of the sidebar: the name, what the reader chose, and the menu of pages.

Its links carry the whole address of what is looked at. Pages that belong together fold into one entry; the one in
which the reader is stands open, and another unfolds without loading anything.

Streamlit's own menu leads to a page's bare path, to which the page then adds its parameters: two entries of the
browser's history, of which the first means the defaults to whoever goes back to it. A link of ours says at once what
the page will say, so one click is one entry, and a new tab opens with everything kept.

A step runs a fragment, and the sidebar stands outside. So the place of the menu is kept, and whoever publishes an
address fills it again. It is one element, as a link of Streamlit's for each page would cost a step a quarter of its
time; `common/links.js` has a click open the page in place, `common/folds.js` keeps open what was unfolded.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from streamlit.navigation.page import StreamlitPage

from glassformer.server.streamlit_private import as_for_all_pages
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import global_params, session
from glassformer.state.link import Link, write_link
from transformer.i18n import Sentence

NAME: Final = "Glassformer"
MENU: Final = "menu"  # in the session, and the key of the menu's block


@dataclass(frozen=True)
class Menu:
    """The menu of a run."""

    pages: Mapping[str, list[StreamlitPage]]  # the pages of each section
    current: str  # the path of the one that is shown
    chosen: Any  # where what a page is about is chosen: above the menu
    place: Any  # where it stands


def begin(pages: Mapping[str, list[StreamlitPage]], current: str, beside_name: Callable[[], None]) -> None:
    """Draw the menu, and beside the name what stands there on every page; call it before the page runs."""
    with st.sidebar.container(key="top", gap=None):
        chosen = st.container(key="chosen", horizontal=True, vertical_alignment="center", gap=None)
        with chosen:  # never empty: Streamlit drops an empty container, and the next moves into its place
            st.header(NAME, anchor=False, width="content")
            beside_name()
        with st.container(key=MENU, gap=None):
            menu = Menu(pages, current, chosen, st.empty())
    st.session_state[MENU] = menu
    _draw(menu, session.linked(), session.linked())


def carry(link: Link, *, shows_run: bool = False) -> None:
    """Have the links lead to what is looked at now, as this page publishes it.

    A cell is one of this page's own map, so links to others leave it out; a file of sentences is not for whoever gets
    a link to a sentence of it.
    """
    there = write_link(replace(link, job="", view=replace(link.view, query=None, key=None)))
    session.link_to(there)
    menu: Menu | None = st.session_state.get(MENU)
    if menu is not None:
        _draw(menu, there, write_link(link), link if shows_run else None)


@contextmanager
def above() -> Iterator[None]:
    """Where a page has chosen what it is about: above the menu, where it stays while another page opens."""
    menu: Menu | None = st.session_state.get(MENU)
    with as_for_all_pages() if menu else nullcontext(), menu.chosen if menu else st.sidebar:
        yield


def link(path: str, label: str, leads_to: Link, *, icon: str | None = None) -> None:
    """Draw a link to a page."""
    menu: Menu | None = st.session_state.get(MENU)
    pages = [page for found in menu.pages.values() for page in found] if menu else []
    page = next((page for page in pages if page.url_path == path), None)
    if page is None:
        st.markdown(label)  # a page alone, as tests run it, has no others
        return
    st.page_link(page, label=label, icon=icon, query_params=global_params.beside(write_link(leads_to)))


def is_there() -> bool:
    """Whether there is a menu; a page alone, as tests run it, has none."""
    return MENU in st.session_state


def has(path: str) -> bool:
    """Whether there is a page of this path; a page alone, as tests run it, takes it that there is."""
    menu: Menu | None = st.session_state.get(MENU)
    return menu is None or any(page.url_path == path for pages in menu.pages.values() for page in pages)


def current() -> str:
    """The path of the page that is shown; "" for a page alone, as tests run it."""
    menu: Menu | None = st.session_state.get(MENU)
    return menu.current if menu else ""


def href(path: str, leads_to: Link) -> str:
    """The address of a page behind the app's own."""
    return hrefs([(path, leads_to)])[0]


def hrefs(places: Sequence[tuple[str, Link]]) -> list[str]:
    """The addresses of pages behind the app's own, by the path of each page and what it shall show."""
    beside = global_params.beside({})  # what a session says of each, looked up once
    return [path + _query(write_link(leads_to) | beside) for path, leads_to in places]


def ways(links: Sequence[tuple[str, str, dict[str, str]]], *, at_step: bool = False) -> None:
    """Draw links of a lesson in a row, which `common/links.js` follows in place as it does those of the menu.

    A page link of Streamlit's to the page that is shown leaves the address bar as it was. Of each link there are the
    path of a page, what it says, and the parameters of the address but for the language. With `at_step` the browser
    has them lead to the step that is looked at, as it does the menu's.
    """
    lines = [
        f'<a href="{escape(path + _query(global_params.beside(said)))}">{escape(here(label))}</a>'
        for path, label, said in links
    ]
    st.html(f'<nav class="gf-ways{" gf-at-step" * at_step}">{"".join(lines)}</nav>', width="content")


def _query(parameters: dict[str, str]) -> str:
    """What follows the path of a page."""
    return f"?{urlencode(parameters)}" if parameters else ""


def _draw(menu: Menu, elsewhere: dict[str, str], again: dict[str, str], run: Link | None = None) -> None:
    beside = global_params.beside({})
    there, here_again = escape(_query(elsewhere | beside)), escape(_query(again | beside))
    lines = list[str]()
    for section, pages in menu.pages.items():
        links = [
            f'<a href="{page.url_path}{here_again}" aria-current="page">{escape(page.title)}</a>'
            if page.url_path == menu.current
            else f'<a href="{page.url_path}{there}">{escape(page.title)}</a>'
            for page in pages
            if page.visibility != "hidden"
        ]
        paths = [page.url_path for page in pages]
        if section and len(links) > 1:  # they fold into one entry
            is_open = " open" if menu.current in paths else ""
            links = [f"<details{is_open}><summary>{escape(here(section))}</summary>", *links, "</details>"]
        lines += links
        further = ((path, blocks.under_entry(path, run)) for path in paths for blocks in page_blocks())
        lines += [_further(path, *more) for path, more in further if more is not None]
    with as_for_all_pages():
        menu.place.html(f"<nav>{''.join(lines)}</nav>")


def _further(path: str, label: Sentence, leads_to: Link | None) -> str:
    """A further link to a page; one that leads nowhere keeps its place."""
    said = escape(here(label))
    if leads_to is None:
        return f'<span class="gf-this">{said}</span>'
    return f'<a class="gf-this" href="{escape(href(path, leads_to))}">{said}</a>'
