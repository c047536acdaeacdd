"""A picture is declared once, where it is written: what it shows of a run, as plain data.

    MASKS = Page("masks", say("Masks"), scene)

    @MASKS.picture("mask_own", say("The mask at its own shape"))
    def own(scene: Scene) -> Plot: ...

All else follows from that and is written nowhere else: the page draws it in either slot (`show(own, scene)`), a
handout prints it, a teacher's link covers it by its key, and one test opens every picture for every kind of model.
A picture's function is pure: it reads no session, and a handout that was never on a page gets the same.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from charts.theme import Spec
from transformer.model.anatomy import Kind
from ui.runs.seen import Seen
from ui.state.click import Click
from ui.state.view import Slot, View
from words import Sentence


class InASlot(Protocol):
    """What pictures are of: a run, or what a page computes from one for all its pictures."""

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""


_Scene = TypeVar("_Scene", bound=InASlot)


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of a moment: plain data, with all that is said of it."""

    spec: Spec  # what a `..._spec` of `charts` made
    alt: str  # the chart in one or two sentences, for people who cannot see it
    how_to_read: str
    fit: bool = False  # it is what its page is about, and takes the height that is left on the first screen
    # What a click on a mark means; fields of the view, if the page says nothing else. It must not hold a run.
    clicked: Callable[[Click], Any] | None = None


@dataclass(frozen=True)
class Picture(Generic[_Scene]):
    """A declared picture. It is called like the function that it was made of."""

    page: Page[_Scene]
    key: str  # names it on its page, in lessons, and in addresses that cover it
    title: Sentence  # what it is, whatever the run
    part: str  # of the page's row of parts; "" where it has none
    plot: Callable[[_Scene], Plot | None]  # None where the model has nothing to show

    def of(self, run: Seen) -> Plot | None:
        """What it shows of a run that is on no page.

        Raises:
            GlassformerError: It cannot be made of this run.
            BusyError: The model has too much to do.
        """
        scene = self.page.scene(run)
        return None if scene is None else self.plot(scene)


@dataclass(frozen=True)
class Page(Generic[_Scene]):
    """A page with what it shows: its pictures by their keys, in the order in which it draws them."""

    path: str
    title: Sentence
    # What its pictures need of a run, computed once for all of them; None where the model has nothing for them.
    scene: Callable[[Seen], _Scene | None]
    panel: str = ""  # the field of the view that chooses a part
    # The attention that layer and head of a view are of; None for the one that the view names.
    kind: Callable[[View], Kind | None] = lambda view: None
    pictures: dict[str, Picture[_Scene]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        PAGES[self.path] = self

    def picture(
        self, key: str, title: Sentence, *, part: str = ""
    ) -> Callable[[Callable[[_Scene], Plot | None]], Picture[_Scene]]:
        """Declare a picture: a decorator of the function that makes it."""

        def declare(plot: Callable[[_Scene], Plot | None]) -> Picture[_Scene]:
            made = self.pictures[key] = PICTURES[key] = Picture(self, key, title, part, plot)
            return made

        return declare

    def first(self, run: Seen) -> Picture[_Scene] | None:
        """The first picture of the part that is looked at."""
        part = getattr(run.view, self.panel) if self.panel else ""
        return next((one for one in self.pictures.values() if one.part == part), None)


PICTURES: Final[dict[str, Picture[Any]]] = {}
"""All whose modules were imported so far, by their keys."""
PAGES: Final[dict[str, Page[Any]]] = {}
"""The pages of those, by their paths."""
