"""The list of pages: the app's own and those of the extensions, each with its section and place in the menu."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamlit.navigation.page import StreamlitPage

from glassformer.shared.door import st
from transformer.extensions import provided
from transformer.i18n import say

MY_MODEL: Final = say("My model")


@dataclass(frozen=True)
class PageEntry:
    """A page of the menu; the `pages` of an extension are a tuple of them."""

    place: int  # among all pages
    script: Path  # from the app's folder
    title: str
    section: str = ""  # which folds; in "" each page is an entry by itself
    path: str = ""  # in the address, if it is not the script's name
    is_listed: bool = True  # in the menu
    is_default: bool = False  # at "/"

    def page(self) -> StreamlitPage:
        """The page, as `st.navigation` takes it."""
        return st.Page(
            self.script,
            title=self.title,
            url_path=self.path or self.script.stem,
            default=self.is_default,
            visibility="visible" if self.is_listed else "hidden",
        )


def by_section(own: Iterable[PageEntry]) -> dict[str, list[StreamlitPage]]:
    """The app's own pages and those of the extensions."""
    sections = dict[str, list[StreamlitPage]]()
    for entry in sorted((*own, *(one for pages in provided("pages") for one in pages)), key=lambda one: one.place):
        sections.setdefault(entry.section, []).append(entry.page())
    return sections
