"""What a saved run shows of a page: its pictures with their frames, and by name what had to be left out.

That is what is work for the model at each step, what would make the file too large, and what a page draws of a step
that is no picture.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as but
from typing import Any, Final

from glassformer.runs.frames import NoFramesError, frames_of
from glassformer.runs.open_run import seen
from glassformer.runs.picture import PAGES, Page, Part, Picture, declare_all
from glassformer.runs.seen import Seen
from glassformer.shared.door import here
from glassformer.shared.drawing import at_a_moment
from glassformer.shared.saving import Origin
from transformer.errors import GlassformerError
from transformer.i18n import joined, say

MOST_STEPS: Final = 64  # of a run whose file may have all pages: 30 steps take some seconds of the processor
NO_TABLE: Final = "none"  # in place of a button: what the browser has is rounded, so it saves no table of it


@dataclass
class SavedPage:
    """What a file has of a page."""

    room: int  # bytes that are left
    slot: str
    of: Origin  # what its files are of
    language: str
    shows: list[dict[str, Any]] = field(default_factory=list)  # what components are given
    frames: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # titles

    def missing(self) -> str:
        """What is not there, in a sentence; "" if all is."""
        names = joined(", ", dict.fromkeys(self.left_out))
        return say("This file leaves out some content that Glassformer shows: {names}.", names=names) if names else ""

    def add(self, payload: dict[str, Any], name: str = "", moves: dict[str, Any] | None = None) -> bool:
        """Take something in, with its frames; gives back whether there was room."""
        n_bytes = len(json.dumps((payload, moves)))
        if n_bytes > self.room:
            return False
        self.room -= n_bytes
        self.shows.append(payload)
        self.frames |= {name: moves} if moves else {}
        return True


def others(page: Page, run: Seen) -> list[Page]:
    """The other pages with a picture that moves; one of two runs only if the run's link names a second."""
    declare_all()
    alone = not run.link.beside and not run.link.interventions
    found = [one for one in PAGES.values() if one is not page and not (one.of_two and alone)]
    return [one for one in found if any(_moves(part) for part in one.parts.values())]


def _moves(part: Part[Any]) -> bool:
    return any(picture.follows == "frames" for picture in part.pictures.values())


def seen_on(page: Page, run: Seen) -> Seen:
    """A run as another page looks at it."""
    link = but(run.link, view=but(run.link.view, step=run.view.step))
    return seen(run.checkpoint, link, run.trace, kind=page.kind(link.view), slot=run.slot)[0]


def saved_page(
    made: SavedPage, page: Page, run: Seen, *, whole: bool, pictures: Sequence[Picture[Any]] | None = None
) -> None:
    """Take in the part that is looked at, and those in which pictures are all that there is to see.

    The `whole` page has all parts; pictures that are named stand for all, work for the model included. Errors as of
    `Work`.
    """
    if pictures is not None:
        made.left_out += [picture.title for picture in pictures if not _picture(made, picture, run, works=True)]
        return
    chosen = page.chosen(run.view)
    parts = sorted(page.parts.values(), key=lambda part: part is not chosen)
    for part in parts:
        if part.asks and part is not chosen and not whole:
            made.left_out.append(part.title)
            continue
        made.left_out += [picture.title for picture in part.pictures.values() if not _picture(made, picture, run)]
        for key, (title, make) in part.others.items():
            payload = make(run, made.of, f"{made.slot}{key}")
            if payload is not None and not made.add(here(payload, made.language)):
                made.left_out.append(title)


def _picture(made: SavedPage, picture: Picture[Any], run: Seen, *, works: bool = False) -> bool:
    """Take a picture in; gives back whether it is there, or there is nothing to show."""
    try:
        plot = picture.of(run)
        if plot is None:
            return True
        if picture.follows == "server" and not works:
            return False
        moves = None
        if picture.follows != "still" and run.trace.n_steps > 1:
            moves = frames_of(picture, run, made.of, made.language, most=made.room)
    except (NoFramesError, GlassformerError):
        return False
    key = f"{made.slot}{picture.key}"
    name = f"{made.language} {key}"
    moment = at_a_moment(plot.spec, made.of, key=picture.key, language=made.language, **plot.words)[1]
    rounded = plot.spec.get("table") or "grid" in plot.spec["layout"].get("meta", {})
    more = {"name": key, "table": NO_TABLE if rounded else "", "fit": 0, "clickable": False,
            "follows": name if moves else "still", "step": run.view.step}  # fmt: skip
    return made.add(moment | more, name, moves)
