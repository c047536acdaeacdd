"""What snapshots add around pages: the slider over the training of the checkpoint that is chosen."""

from collections.abc import Callable

from glassformer.extensions.snapshots.slider import SLIDER, choose, on_page, slider
from glassformer.shared.door import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.load import Checkpoint


class SnapshotBlocks(PageBlocks):
    """The slider, in the sidebar and on the page."""

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """The slider of the checkpoint that is chosen."""
        if slot != MAIN and take is not None:
            slider(name, key=f"{slot}{SLIDER}", take=take)
            return
        with st.container(key=f"{SLIDER}_place", gap=None):
            slider(name, key=SLIDER, take=choose)

    def under_source(self, checkpoint: Checkpoint) -> None:
        """The slider once more: on a telephone and in a presentation there is no sidebar beside the page."""
        on_page(checkpoint)


BLOCKS = SnapshotBlocks()
