"""What training draws around pages: the slider over the snapshots of the checkpoint that is chosen."""

from collections.abc import Callable

from glassformer.extensions.training import training_time
from glassformer.shared.door import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.load import Checkpoint


class TrainingBlocks(PageBlocks):
    """The slider, in the sidebar and on the page."""

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """The slider of the checkpoint that is chosen; of the main one the page follows a training that goes on."""
        if slot != MAIN and take is not None:
            training_time.slider(name, key=f"{slot}{training_time.SLIDER}", take=take)
            return
        with st.container(key=f"{training_time.SLIDER}_place", gap=None):
            training_time.slider(name, key=training_time.SLIDER, take=training_time.choose)
        training_time.follow_growth(name)

    def under_source(self, checkpoint: Checkpoint) -> None:
        """The slider once more: on a telephone and in a presentation there is no sidebar beside the page."""
        training_time.on_page(checkpoint)


BLOCKS = TrainingBlocks()
