"""Navigation menu in the sidebar, tabs of related pages, and links between pages.

The links carry all query parameters of the current view. Related pages are one entry of the menu, which leads to the
first; the others are tabs above the page.

Streamlit's own menu leads to a page's bare path, to which the page then adds its parameters: two history entries, of
which the first resets the view when the user goes back to it. Our links have the final URL: one click is one entry,
and a new tab opens with everything kept.

A step reruns a fragment, and the sidebar is outside of it. So the menu's placeholder is kept, and each new URL fills
it again. It is one element, as one Streamlit link per page would take a quarter of a step's time;
`common/streamlit-page.js` opens pages in place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from streamlit.navigation.page import StreamlitPage

from glassformer.server.streamlit_private import as_for_all_pages
from glassformer.shared import page_style
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import MY_MODEL, page_blocks
from glassformer.state import global_params, session
from glassformer.state.link import Link, write_link

NAME: Final = "Glassformer"
MENU, TABS = "menu", "tabs"  # the keys of the blocks of both, and the menu's in the session


@dataclass(frozen=True)
class Menu:
    """The menu of a run."""

    pages: Mapping[str, list[StreamlitPage]]  # the pages of each section
    current: str  # the path of the one that is shown
    chosen: Any  # where what a page is about is chosen: above the menu
    place: Any  # where it stands
    tabs: Any  # where the other pages of its section stand


def begin(pages: Mapping[str, list[StreamlitPage]], current: str, beside_name: Callable[[], None]) -> None:
    """Draw the menu, and `beside_name` next to the name; call it before the page runs."""
    with st.sidebar.container(key="top", gap=None):
        chosen = st.container(key="chosen", horizontal=True, vertical_alignment="center", gap=None)
        with chosen:  # never empty: Streamlit drops an empty container, and the next moves into its place
            st.header(NAME, anchor=False, width="content")
            beside_name()
        with st.container(key=MENU, gap=None):
            place = st.empty()
    with st.container(key=TABS, gap=None):
        menu = Menu(pages, current, chosen, place, st.empty())
    st.session_state[MENU] = menu
    _draw(menu, session.linked(), session.linked())


def carry(link: Link, *, shows_run: bool = False) -> None:
    """Have the links lead to the current view, as this page publishes it.

    Links to other pages omit the cell, as it belongs to this page's map, and the file run: a link to one sentence
    must not give access to the whole file.
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


def link(path: str, label: str, leads_to: Link, *, icon: str | None = None, at: str = "") -> None:
    """Draw a link to a page, or to a heading on it: `at` is the anchor of that."""
    menu: Menu | None = st.session_state.get(MENU)
    pages = [page for found in menu.pages.values() for page in found] if menu else []
    page = next((page for page in pages if page.url_path == path), None)
    if page is None:
        st.markdown(label)  # a page alone, as tests run it, has no others
        return
    if at:  # Streamlit's own links lose it
        ways([(path, label, write_link(leads_to))], at=at)
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


def ways(links: Sequence[tuple[str, str, dict[str, str]]], *, at_step: bool = False, at: str = "") -> None:
    """Draw links of a lesson in a row, which `common/streamlit-page.js` follows in place as it does those of the menu.

    (A page link of Streamlit's to the current page would not change the URL.) Each link: the path of a page, its
    label, and the query parameters without the language. With `at_step` they lead to the current step, as the menu's;
    `at` is the anchor of a heading.
    """
    where = f"#{at}" if at else ""
    lines = [
        f'<a href="{escape(path + _query(global_params.beside(said)) + where)}">{escape(here(label))}</a>'
        for path, label, said in links
    ]
    st.html(f'<nav class="gf-ways{" gf-at-step" * at_step}">{"".join(lines)}</nav>', width="content")


def _query(parameters: dict[str, str]) -> str:
    return f"?{urlencode(parameters)}" if parameters else ""


def _draw(menu: Menu, elsewhere: dict[str, str], again: dict[str, str], run: Link | None = None) -> None:
    beside = global_params.beside({})

    def address(path: str) -> str:
        if path == menu.current:
            return path + _query(again | beside)
        led = [one for blocks in page_blocks() if run is not None and (one := blocks.leads_to(path, run)) is not None]
        return href(path, led[0]) if led else path + _query(elsewhere | beside)

    entries, tabs = list[str](), list[str]()
    for section, pages in menu.pages.items():
        listed = [page for page in pages if page.visibility != "hidden"]
        is_here = any(page.url_path == menu.current for page in pages)
        if is_here and len(listed) > 1:
            tabs = [_link(address(one.url_path), one.title, "page" * (one.url_path == menu.current)) for one in listed]
        for first in listed[:1]:
            current = "page" if first.url_path == menu.current else "true" if is_here else ""
            entries += ["<hr>"] * (section == MY_MODEL) + [_link(address(first.url_path), section, current)]
    with as_for_all_pages():
        menu.place.html(f"<nav>{''.join(entries)}</nav>")
        menu.tabs.html(f"{page_style.TITLE_IN_TABS}<nav>{''.join(tabs)}</nav>" if tabs else "<nav hidden></nav>")


def _link(address: str, title: str, current: str) -> str:
    """A link of the menu; `current` says how it is the page that is shown, "" for any other."""
    here_it_is = f' aria-current="{current}"' if current else ""
    return f'<a href="{escape(address)}"{here_it_is}>{escape(here(title))}</a>'
