"""URL of the run that is shown (`RunUrl`): query parameters, published to the browser and to the menu's links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from glassformer.runs import sources
from glassformer.shared import menu
from glassformer.state import session
from glassformer.state.link import DEFAULT_NEW, Link
from glassformer.state.view import MAIN
from transformer.runs.query import Query
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

REVISION_LENGTH = 12
_PLAIN = Link()


@dataclass(frozen=True)
class RunUrl:
    """What the address says of a run that is shown; it holds no run."""

    checkpoint: Checkpoint
    link: Link
    own: Query  # with nothing forced
    says: bool  # what could not be done has no address, as it would show nothing; and it says the main slot only

    def publish(self, step: int, *, carries: bool = True) -> None:
        """Write the address of a step, and have the menu lead there on other pages, if the browser does not."""
        if not self.says:
            return
        if carries:
            publish(self.checkpoint, self._at(step))
        else:
            session.publish(address(self.checkpoint, self._at(step)))

    def addresses(self) -> tuple[str, str] | None:
        """The queries of the first step and of the second; None if the address says nothing of the run."""
        if not self.says:
            return None
        first, second = (urlencode(session.spelled(address(self.checkpoint, self._at(step)))) for step in (0, 1))
        return first, second

    def _at(self, step: int) -> Link:
        view = replace(self.link.view, step=step)
        return replace(self.link, view=view, tried=session.tried_on(MAIN, self.own))


def publish(checkpoint: Checkpoint | LabelledMaps, link: Link | None = None, *, job: str = "") -> None:
    """Write the address, and have the menu lead there on other pages; without a link, what the session asks for."""
    shows_run = link is not None
    link = replace(address(checkpoint, session.asked() if link is None else link), job=job)
    session.publish(link)
    menu.carry(link, shows_run=shows_run)


def publish_unopened() -> None:
    """Write the address of a page that has opened nothing, and have the menu lead on with what is chosen."""
    link = replace(session.asked(), revision="")
    own, bare = session.left_out()
    plain = replace(link, model="")
    if link.model == bare and not link.answers and (own == bare or plain == _PLAIN):
        link = plain
    session.publish(link)
    menu.carry(link)


def address(checkpoint: Checkpoint | LabelledMaps, link: Link, **fields: Any) -> Link:
    """The link, looking at something else, with everything left out that the app would take by itself."""
    own, bare = session.left_out()
    revision = "" if sources.changes(link.model) else checkpoint.content_hash[:REVISION_LENGTH]
    view = link.view.but(**fields)
    said: dict[str, Any] = {"revision": "", "view": view}
    if link.tried == (link.forced,):
        said["tried"] = ()
    if isinstance(checkpoint, LabelledMaps):  # nothing is run
        return Link(model="" if link.model == own else link.model, revision=revision, view=view)
    if link.source == checkpoint.card.first_example():
        said["source"] = None
    if link.max_new == min(DEFAULT_NEW, checkpoint.config.max_len):
        said["max_new"] = DEFAULT_NEW
    plain = replace(link, **said)
    if replace(plain, model="") == _PLAIN and link.model == bare:
        return _PLAIN
    return replace(plain, model="" if link.model == own == bare and not link.answers else link.model, revision=revision)
