"""Link from a changed run to its card on What goes wrong, where the change is a known mistake."""

from dataclasses import replace

from glassformer.extensions.effects.mistake_runs import PADS, shown
from glassformer.extensions.wirings.catalogue import texts
from glassformer.shared import menu
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

PAGE = "wrong"


class MistakeLink(PageBlocks):
    """See the module."""

    def above_run(self, checkpoint: Checkpoint, link: Link, slot: Slot) -> None:
        """What the change does in one pass, as in training; a run that is written step by step may show nothing."""
        asked = {*link.interventions} - {PADS}
        if not asked or slot != MAIN or menu.current() == PAGE:
            return
        for name, ways in shown(checkpoint.config).items():
            if any({*one.changes} == asked for one in ways):
                there = replace(
                    link, job="", interventions=(), view=link.view.but(mistake=name, variant="", changed_map="")
                )
                label = say("What goes wrong in training: {mistake}", mistake=texts()[name].title)
                menu.link(PAGE, label, there, icon=":material/arrow_forward:")
                return


BLOCKS = MistakeLink()
