"""How pieces are chosen: a beam search as a tree, before the draw, many draws, and drafts that are checked."""

from glassformer.frame.run_page import run_page
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import choose_part
from glassformer.search.search_page import SEARCH
from glassformer.shared import choices, cover
from glassformer.shared.door import st
from transformer.i18n import say
from transformer.model.anatomy import anatomy


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True)
    if not anatomy(run.checkpoint.config).writes:
        said = say("This encoder-only model generates no output, so there is no choice of pieces to show.")
        st.info(said, icon=":material/info:")
        return
    row = choices.bar(run.slot)
    with row:
        choose_part(SEARCH, run.slot)
    cover.part(lambda: attempt(lambda: SEARCH.entry(run).draw(run, row)))


run_page(SEARCH, draw)
