"""Pages and blocks that extensions add: menu entries, and places above, in the first row, and below a run.

An extension's `blocks` names a `PageBlocks`. Pages call each of them, in the order of the extensions:

    for blocks in page_blocks():
        blocks.under_source(checkpoint)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamlit.navigation.page import StreamlitPage

from glassformer.shared.i18n import st
from glassformer.state.view import MAIN, Slot
from transformer.extensions import extensions, imported, provided
from transformer.i18n import say

if TYPE_CHECKING:
    from glassformer.state.link import Link
    from transformer.checkpoint.load import Checkpoint
    from transformer.model.anatomy import Kind


MY_MODEL: Final = say("My model")


@dataclass(frozen=True)
class PageEntry:
    """A page of the menu; the `pages` of an extension are a tuple of them."""

    place: int  # among all pages
    script: Path  # from the app's folder
    title: str
    section: str = ""  # the entry that it shares with others, whose tabs they are; "": one by itself
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
        sections.setdefault(entry.section or entry.title, []).append(entry.page())
    return sections


class PageBlocks:
    """What an extension draws at each place; each method is called there, and does nothing by itself."""

    def on_every_page(self) -> None:
        """Before the menu, of every page."""

    def above_page(self, page: str) -> None:
        """Under the menu and above a page, by its path."""

    def around_page(self, page: str) -> AbstractContextManager[None]:
        """Entered before a page is drawn and left after it, unless the page stops early."""
        return nullcontext()

    def leads_to(self, path: str, run: Link) -> Link | None:
        """Where the menu leads to from the view of a run, for a page by its path; None for that view, as elsewhere."""
        return None

    def under_title(self) -> None:
        """Under the title of a page without a run."""

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """Drawn under a slot's choice of checkpoint `name`; `take` gets another one chosen there, else the session."""

    def opened(self, checkpoint: Checkpoint) -> None:
        """Called when a page has opened its checkpoint, before the rest of the sidebar and the source box."""

    def in_class(self) -> Callable[[], None] | None:
        """What draws more in the sidebar's section "In class"; None for nothing, and then the section may fold."""
        return None

    def in_source_row(self, checkpoint: Checkpoint) -> None:
        """In the row of the source box, behind its button."""

    def under_source(self, checkpoint: Checkpoint) -> None:
        """Under the row of the source box."""

    def above_run(self, checkpoint: Checkpoint, link: Link, slot: Slot) -> None:
        """Above the run that a link asks for, of a slot whose changes no page says by itself."""

    def for_head(self, run: Any, kind: Kind, layer: int | None, head: int | None) -> None:
        """Under the choice of one head of an `OpenRun`; the layer and the head are None where all are looked at."""

    def below_run(self, page: Any, run: Any) -> None:
        """Below an `OpenRun` on its `Page` of `glassformer.runs.picture`."""


def page_blocks() -> tuple[PageBlocks, ...]:
    """Those of all extensions."""
    return provided("blocks")


def draw_below(shown: object) -> None:
    """Draw what extensions have to say of a thing that a page shows, such as measures of heads, by its class."""
    name = f"{type(shown).__module__}:{type(shown).__qualname__}"
    for one in extensions():
        if name in one.below:
            imported(one.below[name])(shown)


@contextmanager
def around_page(page: str) -> Iterator[None]:
    """Draw what is around a page; the page is drawn within."""
    with ExitStack() as stack:
        for blocks in page_blocks():
            stack.enter_context(blocks.around_page(page))
        yield
