"""Page script of Masks: which query may see which key; where it is covered, only the tokens."""

from glassformer.frame.run_page import run_page
from glassformer.masks import mask_panels
from glassformer.masks.scene import MASKS
from glassformer.runs.open_run import OpenRun
from glassformer.shared import cover_box
from transformer.i18n import say


def draw(run: OpenRun) -> None:
    """Draw the page; if it is covered, the pieces that it is about."""
    rows = {say("The sentence in tokens:"): run.trace.src_tokens, say("The decoder reads:"): run.trace.read_tokens}
    cover_box.part(lambda: mask_panels.draw(run), rows={said: pieces for said, pieces in rows.items() if pieces})


run_page(MASKS, draw)
