"""The part "Over training" of the Attention page: one head at all snapshots of the checkpoint's training."""

from ui.attention.film_pictures import Film, film_of, strip
from ui.frame.snapshot import NO_SNAPSHOTS, move_to
from ui.runs.growing import growing, progress
from ui.runs.grown import has_snapshots, hides
from ui.runs.open_run import OpenRun
from ui.runs.show import show
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
