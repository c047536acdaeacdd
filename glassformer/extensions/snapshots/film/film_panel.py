"""Part "Over training": the maps of one head at every training snapshot."""

from functools import partial
from typing import Any

from glassformer.attention.attention_panels import below, one_head
from glassformer.extensions.snapshots.film.film_pictures import Film, film_of, strip
from glassformer.extensions.snapshots.snapshot_run_jobs import growing, progress
from glassformer.extensions.snapshots.snapshot_runs import has_snapshots, hides
from glassformer.extensions.snapshots.snapshot_slider import NO_SNAPSHOTS, move_to, whole_page_if_moved
from glassformer.runs.open_run import OpenRun, attempt
from glassformer.runs.show import show
from glassformer.shared import cover_box
from glassformer.shared.i18n import st
from transformer.i18n import say

HIDDEN = say("These maps have rows for all tokens of the output. Turn off “Hide candidates until I guess” to see them.")


def open_film(run: OpenRun) -> Film | None:
    """One head at the snapshots, as far as they have been run; None without snapshots."""
    found = growing(run)
    return None if found is None else film_of(found)


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`; it chooses a head if none is selected."""
    whole_page_if_moved()
    found = None if hides(run) or cover_box.covered(cover_box.PART) else attempt(lambda: open_film(run))
    if found is not None:
        with row:
            one_head(run, {"layer": found.layer, "head": found.head})
    below(run, partial(_strip, run, found))


def _strip(run: OpenRun, film: Film | None) -> None:
    if hides(run):
        st.info(HIDDEN, icon=":material/visibility_off:")
    elif film is None:
        if not has_snapshots(run.checkpoint):
            st.info(NO_SNAPSHOTS, icon=":material/info:")
    else:
        progress(film.growth)
        show(strip, film, take=move_to)
