"""Attention maps from a file, opened on a page in place of a run (`OpenMaps`); the type of both (`AnyRun`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from glassformer.runs import loading
from glassformer.runs.map_axes import fit_given
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import REVISION_LENGTH, publish
from glassformer.runs.viewed_run import Viewed, VisibleMaps
from glassformer.shared import drawing
from glassformer.state import session
from glassformer.state.view import MAIN
from transformer.i18n import say
from transformer.runs.query import Query
from transformer.runs.trace import LabelledMaps

MOST_OF_SENTENCE: Final = 1_000  # characters; a query would refuse a very long one


@dataclass(frozen=True)
class OpenMaps(Viewed):
    """Given maps that a page draws: to panels that need weights and labels alone they are what an `OpenRun` is."""

    visible: VisibleMaps  # the maps and what of them is looked at
    checkpoint: None
    name: str  # of the file

    @property
    def trace(self) -> LabelledMaps:
        """The maps."""
        return self.visible.trace

    @property
    def run_id(self) -> str:
        """Changes exactly when the maps do."""
        return self.trace.content_hash

    def again(self) -> Callable[[], LabelledMaps]:
        """Gets the maps once more, for what a session keeps."""
        return partial(loading.open_maps, self.name)

    def publish(self) -> None:
        """Write the address of what is shown."""
        publish(self.trace, replace(session.asked(), view=replace(self.view, guess=session.view().guess)))


AnyRun = OpenRun | OpenMaps
"""What a panel draws that needs weights and labels alone."""


def open_maps(maps: LabelledMaps, name: str) -> OpenMaps:
    """What the main slot looks at of given maps."""
    here, revision = session.standing(MAIN), maps.content_hash[:REVISION_LENGTH]
    if here.revision and here.revision != revision:
        session.add_note(
            say("This link was made with a different version of {name}, so what it shows may have changed.", name=name)
        )
    query = Query(checkpoint=maps.content_hash, source=maps.sentence[:MOST_OF_SENTENCE])
    session.stand(MAIN, revision=revision, last_query=query, last_rows="")  # which saved files say they are of
    view, notes = fit_given(session.view(), maps)
    drawing.notes((*session.take_notes(), *notes))
    return OpenMaps(VisibleMaps(maps, view), None, name)
