"""Registry of pages, parts and pictures (`@PART.picture`), and the records of a drawn one: plot and captions.

    MASKS = Page("masks", say("Masks"), panel="masks_panel", entries=(PartEntry("checks", say("Checks")), ...))
    CHECKS = MASKS.part("checks", scene)

    @CHECKS.picture("mask_causality", say("Causality: how much each row changes"))
    def causality(scene: Scene) -> Plot: ...

All else follows from that and is written nowhere else: the page draws it in either slot (`show(causality, scene)`), a
handout prints it, a teacher's link covers it by its key, and one test opens every picture for every kind of model.
A picture's function is pure: it reads no session, and a handout that was never on a page gets the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from glassformer.charts.theme import Spec
from glassformer.runs.viewed_run import HasSteps, ViewedRun
from glassformer.shared.csv_export import Origin
from glassformer.state.view import Click, Slot, View, all_fields
from transformer.extensions import LISTED, extensions, imported, provided
from transformer.i18n import Sentence
from transformer.model.anatomy import Kind

PAGES: Final[dict[str, Page]] = {}
"""The pages whose modules were imported so far, by their paths."""
PICTURES: Final[dict[str, Picture[Any]]] = {}
"""Their pictures, by their keys."""


class InASlot(Protocol):
    """What pictures are of: a run, or what a part of a page computes from one for all its pictures."""

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""


_APP: Final = __name__.partition(".")[0]
_Scene = TypeVar("_Scene", bound=InASlot)
Follows = Literal["frames", "still", "server"]
"""How a picture follows the step: the browser has it at every step and draws that at once (`runs.step_frames`); it is
the same at all of them, but for a row that the browser marks; or the server draws it anew, as each step is work for
the model."""


@dataclass(frozen=True, kw_only=True)
class CaptionTable:
    """A small table of a moment."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]  # each as long as `columns`
    fold: str = ""  # what it is folded under; "": it stands open
    note: str = ""  # under it


@dataclass(frozen=True, kw_only=True)
class Captions:
    """What the component of a chart writes next to it, of the same moment, letter by letter."""

    above: str = ""  # over the chart
    table: CaptionTable | None = None  # under it, and under how it is read
    below: str = ""  # under that
    pale: bool = False  # `below` is in small pale letters
    beside: bool = False  # all but `above` is next to the chart, where there is room

    @property
    def plain(self) -> dict[str, Any]:
        """The same as plain data."""
        table = self.table and vars(self.table) | {
            "columns": list(self.table.columns),
            "rows": list(map(list, self.table.rows)),
        }
        return vars(self) | {"table": table}


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of a moment: plain data, with all that is said of it."""

    spec: Spec  # what a `..._spec` of `charts` made
    alt: str  # the chart in one or two sentences, for people who cannot see it
    how_to_read: str = ""  # instead of what the chart itself says
    fit: bool = False  # it is what its page is about, and takes the height that is left on the first screen
    of_sentence: bool = True  # it is of the sentence at hand, as the others of its part
    # What a click on a mark means; fields of the view, if the page says nothing else. It must not hold a run.
    clicked: Callable[[Click], Any] | None = None
    said: Captions | None = None

    @property
    def words(self) -> dict[str, Any]:
        """What is said of it, as plain data."""
        return {"alt": self.alt, "how_to_read": self.caption, "said": self.said and self.said.plain}

    @property
    def caption(self) -> str:
        """How to read it."""
        own: str = self.spec.get("how_to_read", "")  # str() of it would no longer know its template
        return self.how_to_read or own


@dataclass(frozen=True)
class Picture(Generic[_Scene]):
    """A declared picture."""

    part: Part[_Scene]
    key: str  # names it on its page, in lessons, and in addresses that cover it
    title: Sentence  # what it is, whatever the run
    plot: Callable[[_Scene], Plot | None]  # None where the model has nothing to show
    follows: Follows = "frames"

    def of(self, shown: HasSteps) -> Plot | None:
        """What it shows of a run, or what else its part has scenes of, that is on no page; errors: `ModelAccess`."""
        scene = self.part.scene(shown)
        return None if scene is None else self.plot(scene)


Other = Callable[[ViewedRun, Origin, str], dict[str, Any] | None]
"""What is no chart: what its component is given of a run, of what its files are, and under which key."""


@dataclass(frozen=True)
class Part(Generic[_Scene]):
    """A part of a page, with its pictures in the order in which it draws them."""

    page: Page
    name: str  # the value of the page's field; "" where the page has one part alone
    title: str  # of its button
    # What its pictures need of a run, computed once for all of them; None where the model has nothing for them.
    scene: Callable[[Any], _Scene | None]
    of_sentence: bool = True  # its pictures are of the sentence at hand, and not of the model alone
    asks: bool = False  # beside its pictures the page draws what is of the step, so the server draws each step
    pictures: dict[str, Picture[_Scene]] = field(default_factory=dict)
    # What is not a chart and that the browser steps through itself: key -> title and function.
    others: dict[str, tuple[Sentence, Other]] = field(default_factory=dict)

    def other(self, key: str, title: Sentence) -> Callable[[Other], Other]:
        """Declare what is not a chart: a decorator of the function that makes it."""

        def declare(make: Other) -> Other:
            self.others[key] = title, make
            return make

        return declare

    def picture(
        self, key: str, title: Sentence, *, follows: Follows = "frames"
    ) -> Callable[[Callable[[_Scene], Plot | None]], Picture[_Scene]]:
        """Declare a picture: a decorator of the function that makes it."""

        def declare(plot: Callable[[_Scene], Plot | None]) -> Picture[_Scene]:
            made = self.pictures[key] = PICTURES[key] = Picture(self, key, title, plot, follows)
            return made

        return declare


@cache
def declare_all() -> None:
    """Have all pages and pictures in `PAGES` and `PICTURES`: import each `..._pictures.py` of a page."""
    for package in (_APP, *(f"{LISTED}.{one.name}" for one in extensions())):
        folder = Path(str(import_module(package).__file__)).parent
        for file in sorted(folder.rglob("*_pictures.py")):
            path = file.relative_to(folder).with_suffix("").parts
            if package != _APP or path[0] != "extensions":
                import_module(".".join((package, *path)))


@dataclass(frozen=True)
class PartEntry:
    """A part of a page before any of it is imported: a page lists its own, an extension's `parts` names one more."""

    name: str  # the value of the page's field
    title: Sentence  # of its button
    draws: str = ""  # "package.module:name" of what draws it, imported only then; "": the page's own module does
    page: str = ""  # the path of the page, where an extension adds it
    still: bool = False  # nothing in it moves with the step
    is_there: Callable[[Any], bool] = lambda run: True  # whether a run has it; it stays while it is looked at

    def draw(self, *given: Any) -> None:
        """Draw it, given what its page has: a run, and the row for its controls."""
        imported(self.draws)(*given)


@dataclass(frozen=True)
class Page:
    """A page that shows pictures of a run."""

    path: str
    title: Sentence
    panel: str = ""  # the field of the view that chooses a part
    # The attention that layer and head of a view are of; None for the one that the view names.
    kind: Callable[[View], Kind | None] = lambda view: None
    of_two: bool = False  # it shows two runs
    entries: tuple[PartEntry, ...] = ()  # its parts, but for those that extensions add
    parts: dict[str, Part[Any]] = field(default_factory=dict)  # those of which pictures are declared so far

    def __post_init__(self) -> None:
        PAGES[self.path] = self

    def part(
        self, name: str, scene: Callable[[Any], _Scene | None], *, of_sentence: bool = True, asks: bool = False
    ) -> Part[_Scene]:
        """Declare what the pictures of a part need; "" is the one part of a page that lists none."""
        title = self.listed()[name].title if name else self.title
        made = self.parts[name] = Part(self, name, title, scene, of_sentence, asks)
        for one in self.listed() if name else ():  # whichever was imported first
            if one in self.parts:
                self.parts[one] = self.parts.pop(one)
        return made

    def listed(self) -> dict[str, PartEntry]:
        """All its parts, in the order of the words of the field that chooses one."""
        there = {one.name: one for one in (*self.entries, *(one for one in provided("parts") if one.page == self.path))}
        return {name: there[name] for name in all_fields()[self.panel].words if name in there}

    def offered(self, run: Any) -> dict[str, PartEntry]:
        """Those that a run has, or given maps."""
        shown = None if run.checkpoint is None else run.view.get(self.panel)
        return {name: one for name, one in self.listed().items() if name == shown or one.is_there(run)}

    def entry(self, run: Any) -> PartEntry:
        """The selected part, or the first, where there is no such."""
        there = self.offered(run)
        return there.get(run.view.get(self.panel)) or next(iter(there.values()))

    def chosen(self, view: View) -> Part[Any] | None:
        """The selected part, imported if need be; None where it has no pictures."""
        name = view.get(self.panel) if self.panel else ""
        if name and name not in self.parts and name in (there := self.listed()) and there[name].draws:
            imported(there[name].draws)
        return self.parts.get(name)

    def first(self, view: View) -> Picture[Any] | None:
        """The first picture of the selected part."""
        part = self.chosen(view)
        return None if part is None else next(iter(part.pictures.values()), None)
