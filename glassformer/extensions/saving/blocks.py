"""What is below a run: the menu that saves it with pictures."""

from functools import partial
from urllib.parse import urlencode

from glassformer.extensions.saving.saved_run import MOST_STEPS, SavedRunRequest, origin, saved_run
from glassformer.frame.sentence_stepper import SAVES
from glassformer.runs.open_run import OpenRun, address
from glassformer.runs.picture import Page
from glassformer.runs.step_frames import RunRef
from glassformer.shared import cover_box
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.global_params import base
from glassformer.state.link import write_link
from transformer.i18n import say


class SavingBlocks(PageBlocks):
    """The menu "Save this run"."""

    def below_run(self, page: Page, run: OpenRun) -> None:
        """Draw it, unless something is yet to be guessed."""
        if run.view.guess or cover_box.is_on() or not run.trace.n_steps or run.earlier:
            return
        query = urlencode(write_link(address(run.checkpoint, run.link)))
        opens = f"{base()}/{page.path}?{query}" if base() else ""
        kept = SavedRunRequest(RunRef.of(run), page, run.stepper, opens)
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


BLOCKS = SavingBlocks()
