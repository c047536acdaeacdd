"""The part "Over training" of the Attention page: one head at all snapshots of the checkpoint's training."""

from ui.attention.attention_panels import one_head, otherwise, part_and_kind
from ui.attention.film_pictures import OVER_TRAINING, Film, film_of, strip
from ui.attention.map_pictures import ATTENTION
from ui.frame.snapshot import NO_SNAPSHOTS, move_to, whole_page_if_moved
from ui.runs.added_parts import AddedPart
from ui.runs.attempt import attempt
from ui.runs.growing import growing, progress
from ui.runs.grown import has_snapshots, hides
from ui.runs.open_run import OpenRun
from ui.runs.seen import Seen
from ui.runs.show import show
from ui.shared import choices, cover
from ui.shared.door import st
from words import say

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
