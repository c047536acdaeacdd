"""A page about a run: its sidebar, its first row, and below it what is drawn of the run, all by one declaration."""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Kind
from ui.frame.sentence_stepper import SAVES
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.frames import Again
from ui.runs.open_run import OpenRun, address, open_run
from ui.runs.picture import Page
from ui.runs.saved_pages import MOST_STEPS
from ui.runs.saved_run import Kept, origin, saved_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from ui.state.apart import base
from ui.state.link import write_link
from words import say


def run_page(
    page: Page,
    draw: Callable[[OpenRun], object],
    *,
    kind: Callable[[Checkpoint], Kind] | None = None,
    folds: bool = False,
    chooses_head: bool = False,
) -> None:
    """Draw the page; what the sidebar folds and lets choose is as for `sidebar`.

    With `kind` the checkpoint, and not the view, says of which attention layer and head are.
    """
    session.begin(page.path)
    checkpoint = sidebar(page.title, shows_run=True, folds=folds, chooses_head=chooses_head)
    of_a_sentence(page.title, checkpoint, partial(below, page, draw, kind))


@st.fragment
def below(
    page: Page, draw: Callable[[OpenRun], object], kind: Callable[[Checkpoint], Kind] | None, checkpoint: Checkpoint
) -> None:
    """Draw what is below the source box, if there is a run; a step or a click runs this again, alone."""
    run = open_run(checkpoint, kind=kind(checkpoint) if kind else page.kind(session.view()))
    if run is not None:
        draw(run)
        _save(page, run)
        run.publish()


def _save(page: Page, run: OpenRun) -> None:
    """Draw the menu that saves the run with pictures, unless something is yet to be guessed."""
    if run.view.guess or cover.is_on() or not run.trace.n_steps or run.earlier:
        return
    query = urlencode(write_link(address(run.checkpoint, run.link)))
    opens = f"{base()}/{page.path}?{query}" if base() else ""
    kept = Kept(Again.of(run), page, run.stepper, opens)
    st.session_state[SAVES] = kept
    with st.popover(say("Save this run"), icon=":material/save:", key=run.key("save_menu")):
        st.caption(say("One file with the sentence, its steps and its pictures. It opens offline."))
        this, every = say("Pictures of this page"), say("Pictures of all pages")
        long = say(
            "Available only for outputs of at most {most} steps, because longer ones would take too long.",
            most=MOST_STEPS,
        )
        for name, label, more in ((page.path, this, False), ("all", every, True)):
            refused = more and run.trace.n_steps > MOST_STEPS
            st.download_button(
                label,
                partial(saved_run, kept, more=more),
                file_name=f"{origin(run).stem(name)}.html",
                mime="text/html",
                key=run.key(f"save_{name}"),
                on_click="ignore",
                disabled=refused,
                help=long if refused else None,
            )
