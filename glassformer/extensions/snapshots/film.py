"""The part "Over training" of the Attention page: one head at all snapshots of the checkpoint's training."""

from glassformer.attention.attention_panels import one_head, otherwise, part_and_kind
from glassformer.attention.map_pictures import ATTENTION
from glassformer.extensions.snapshots.film_pictures import OVER_TRAINING, Film, film_of, strip
from glassformer.extensions.snapshots.growing import growing, progress
from glassformer.extensions.snapshots.grown import has_snapshots, hides
from glassformer.extensions.snapshots.slider import NO_SNAPSHOTS, move_to, whole_page_if_moved
from glassformer.runs.added_parts import AddedPart
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.seen import Seen
from glassformer.runs.show import show
from glassformer.shared import choices, cover
from glassformer.shared.door import st
from transformer.i18n import say

HIDDEN = say(
    "These maps have rows for all pieces of the output. Turn off “Hide candidates until I guess” to see them."
)


def open_film(run: OpenRun) -> Film | None:
    """One head at the snapshots, as far as they have been run; None without snapshots."""
    found = growing(run)
    return None if found is None else film_of(found)


def draw(run: OpenRun, film: Film | None) -> None:
    """Draw the strip as far as it is."""
    if hides(run):
        st.info(HIDDEN, icon=":material/visibility_off:")
    elif film is None:
        if not has_snapshots(run.checkpoint):
            st.info(NO_SNAPSHOTS, icon=":material/info:")
    else:
        progress(film.growth)
        show(strip, film, take=move_to)


class FilmPart(AddedPart):
    """The part of the Attention page, for checkpoints with snapshots."""

    page, name, still = ATTENTION.path, OVER_TRAINING.name, True

    def is_there(self, run: Seen) -> bool:
        """Whether there are snapshots."""
        return has_snapshots(run.checkpoint)

    def draw(self, run: OpenRun) -> None:
        """Draw it; the page chooses a head where nobody has."""
        whole_page_if_moved()
        found = None if hides(run) or cover.covered(cover.PART) else attempt(lambda: open_film(run))
        with choices.bar(run.slot):
            part_and_kind(run)
            if found is not None:
                one_head(run, {"layer": found.layer, "head": found.head})
        otherwise(run)
        cover.part(lambda: draw(run, found))


PART = FilmPart()
