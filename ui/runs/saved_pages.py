"""What a saved run shows of a page: its pictures with their frames, and by name what had to be left out.

That is what is work for the model at each step, what would make the file too large, and what a page draws of a step
that is no picture.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from dataclasses import replace as but
from typing import Any, Final

from transformer.errors import GlassformerError
from ui.runs.frames import NoFramesError, frames_of
from ui.runs.open_run import seen
from ui.runs.picture import PAGES, Page, Part, Picture, declare_all
from ui.runs.seen import Seen
from ui.shared.door import here
from ui.shared.drawing import at_a_moment
from ui.shared.saving import Origin
from words import joined, say

SAVED: Final = "saved-"  # a slot of its own, as that of a second run
MOST_STEPS: Final = 64  # of a run whose file may have all pages: 30 steps take some seconds of the processor
NO_TABLE: Final = "none"  # in place of a button: what the browser has is rounded, so it saves no table of it


@dataclass
class SavedPage:
    """What a file has of a page."""

    room: int  # bytes that are left
    shows: list[dict[str, Any]] = field(default_factory=list)  # what components are given
    frames: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # titles
    n_bytes: int = 0

    def missing(self) -> str:
        """What is not there, in a sentence; "" if all is."""
        names = joined(", ", dict.fromkeys(self.left_out))
        return say("Not in this file, but in Glassformer: {names}.", names=names) if names else ""

    def add(self, payload: dict[str, Any], name: str = "", moves: dict[str, Any] | None = None) -> bool:
        """Take something in, with its frames; gives back whether there was room."""
        n_bytes = len(json.dumps((payload, moves)))
        if n_bytes > self.room:
            return False
        self.room, self.n_bytes = self.room - n_bytes, self.n_bytes + n_bytes
        self.shows.append(payload)
        self.frames |= {name: moves} if moves else {}
        return True


def others(page: Page) -> list[Page]:
    """The other pages with a picture that moves with the step."""
    declare_all()
    return [one for one in PAGES.values() if one is not page and any(_moves(part) for part in one.parts.values())]


def _moves(part: Part[Any]) -> bool:
    return any(picture.follows == "frames" for picture in part.pictures.values())


def seen_on(page: Page, run: Seen) -> Seen:
    """A run as another page looks at it."""
    link = but(run.link, view=but(run.link.view, step=run.view.step))
    return seen(run.checkpoint, link, run.trace, kind=page.kind(link.view), slot=run.slot)[0]


def saved_page(page: Page, run: Seen, of: Origin, language: str, *, room: int, whole: bool) -> SavedPage:
    """The part that is looked at, and those in which pictures are all that there is to see; the `whole` page has all.

    `room` is how many bytes there are. Errors as of `Work`.
    """
    made, chosen = SavedPage(room), page.chosen(run.view)
    parts = sorted(page.parts.values(), key=lambda part: part is not chosen)
    for part in parts:
        if part.asks and part is not chosen and not whole:
            made.left_out.append(part.title)
            continue
        for picture in part.pictures.values():
            if not _picture(made, picture, run, of, language):
                made.left_out.append(picture.title)
        for key, (title, make) in part.others.items():
            payload = make(run, of, f"{SAVED}{key}")
            if payload is not None and not made.add(here(payload, language)):
                made.left_out.append(title)
    return made


def _picture(made: SavedPage, picture: Picture[Any], run: Seen, of: Origin, language: str) -> bool:
    """Take a picture in; gives back whether it is there, or there is nothing to show."""
    try:
        plot = picture.of(run)
        if plot is None:
            return True
        if picture.follows == "server":
            return False
        moves = None
        if picture.follows == "frames" and run.trace.n_steps > 1:
            moves = frames_of(picture, run, of, language, most=made.room)
    except (NoFramesError, GlassformerError):
        return False
    key, name = f"{SAVED}{picture.key}", f"{language} {picture.key}"
    moment = at_a_moment(plot.spec, of, key=picture.key, alt=plot.alt, how_to_read=plot.caption, language=language)[1]
    rounded = plot.spec.get("table") or "grid" in plot.spec["layout"].get("meta", {})
    more = {"name": key, "table": NO_TABLE if rounded else "", "fit": 0, "clickable": False,
            "follows": name if moves else "still", "step": run.view.step}  # fmt: skip
    return made.add(moment | more, name, moves)
