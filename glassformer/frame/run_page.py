"""A page about a run: its sidebar, its first row, and below it what is drawn of the run, all by one declaration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from glassformer.frame.sidebar import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.runs.open_run import OpenRun, open_run
from glassformer.runs.picture import Page
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from transformer.model.anatomy import Kind

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def run_page(
    page: Page,
    draw: Callable[[OpenRun], object],
    *,
    kind: Callable[[Checkpoint], Kind] | None = None,
    decodes: bool = False,
) -> None:
    """Draw the page; `decodes` is as for `sidebar`.

    With `kind` the checkpoint, and not the view, says of which attention layer and head are.
    """
    session.begin(page.path)
    checkpoint = sidebar(page.title, decodes=decodes)
    of_a_sentence(page.title, checkpoint, partial(below, page, draw, kind))


@st.fragment
def below(
    page: Page, draw: Callable[[OpenRun], object], kind: Callable[[Checkpoint], Kind] | None, checkpoint: Checkpoint
) -> None:
    """Draw what is below the source box, if there is a run; a step or a click runs this again, alone."""
    run = open_run(checkpoint, kind=kind(checkpoint) if kind else page.kind(session.view()))
    if run is not None:
        draw(run)
        for blocks in page_blocks():
            blocks.below_run(page, run)
        run.publish()
