"""From the name of a file of maps to what the Attention page draws, with every failure said in a sentence."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from glassformer.runs import loading
from glassformer.runs.given_maps import GivenLooking
from glassformer.runs.open_run import REVISION_LENGTH, OpenRun, publish
from glassformer.runs.seen import Drawn
from glassformer.runs.sides import fit_given
from glassformer.shared import drawing
from glassformer.state import session
from glassformer.state.view import MAIN, Slot
from transformer.i18n import say
from transformer.runs.labelled_maps import LabelledMaps
from transformer.runs.query import Query

MOST_OF_SENTENCE: Final = 1_000  # characters; a query would refuse a very long one


@dataclass(frozen=True)
class OpenMaps(Drawn):
    """Given maps that a page draws: to panels that need weights and labels alone they are what an `OpenRun` is."""

    looking: GivenLooking  # the maps and what of them is looked at
    checkpoint: None
    name: str  # of the file

    @property
    def trace(self) -> LabelledMaps:
        """The maps."""
        return self.looking.trace

    @property
    def run_id(self) -> str:
        """Changes exactly when the maps do."""
        return self.trace.content_hash

    def again(self) -> Callable[[], LabelledMaps]:
        """Gets the maps once more, for what a session keeps."""
        return partial(loading.open_maps, self.name)

    def publish(self) -> None:
        """Write the address of what is shown."""
        if self.slot == MAIN:
            publish(self.trace, replace(session.asked(), view=replace(self.view, guess=session.view().guess)))


AnyRun = OpenRun | OpenMaps
"""What a panel draws that needs weights and labels alone."""


def open_maps(maps: LabelledMaps, name: str, slot: Slot = MAIN) -> OpenMaps:
    """What a slot looks at of given maps."""
    here, revision = session.standing(slot), maps.content_hash[:REVISION_LENGTH]
    if here.revision and here.revision != revision:
        session.add_note(
            say("This link was made with a different version of {name}, so the maps may have changed.", name=name),
            slot,
        )
    query = Query(checkpoint=maps.content_hash, source=maps.sentence[:MOST_OF_SENTENCE])
    session.stand(slot, revision=revision, last_query=query, last_rows="")  # which saved files say they are of
    view, notes = fit_given(session.view(slot), maps)
    drawing.notes((*session.take_notes(slot), *notes))
    return OpenMaps(GivenLooking(maps, view, slot), None, name)
