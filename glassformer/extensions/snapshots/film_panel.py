"""Part "Over training" of the Attention page: the maps of one head at every training snapshot."""

from functools import partial
from typing import Any

from glassformer.attention.attention_panels import below, one_head
from glassformer.extensions.snapshots.film_pictures import Film, film_of, strip
from glassformer.extensions.snapshots.snapshot_run_jobs import growing, progress
from glassformer.extensions.snapshots.snapshot_runs import has_snapshots, hides
from glassformer.extensions.snapshots.snapshot_slider import NO_SNAPSHOTS, move_to, whole_page_if_moved
from glassformer.frame.decoding import hidden_while_guessing
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import cover_box
from glassformer.shared.i18n import st


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`; it chooses a head if none is selected."""
    whole_page_if_moved()
    grown = None if hides(run) or cover_box.covered(cover_box.PART) else attempt(lambda: growing(run))
    found = None if grown is None else film_of(grown)
    if found is not None:
        with row:
            one_head(run, {"layer": found.layer, "head": found.head})
    below(run, partial(_strip, run, found))


def _strip(run: OpenRun, film: Film | None) -> None:
    if hidden_while_guessing(hides(run)):
        return
    if film is not None:
        progress(film.growth)
        show(strip, film, take=move_to)
    elif not has_snapshots(run.checkpoint):
        st.info(NO_SNAPSHOTS, icon=":material/info:")
