"""What the page Training draws around others: they follow a training that goes on."""

from collections.abc import Callable
from typing import Final

from glassformer.extensions.training_page import own_trainings
from glassformer.shared.door import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.snapshots import steps

GROWS_SECONDS: Final = 3.0  # between two looks at a training that is under way


class TrainingBlocks(PageBlocks):
    """Nothing that is seen."""

    def under_choice(self, name: str, *, slot: Slot = MAIN, take: Callable[[str], None] | None = None) -> None:
        """Have the page drawn again when the training of the main slot has another snapshot, or has ended."""
        training = own_trainings.find(name) if slot == MAIN else None
        if training is not None and own_trainings.is_under_way(training):
            st.fragment(_look_for_more, run_every=GROWS_SECONDS)(name, len(steps(training.out)))


def _look_for_more(name: str, drawn: int) -> None:
    training = own_trainings.find(name)
    if training is None or len(steps(training.out)) != drawn or not own_trainings.is_under_way(training):
        st.rerun()


BLOCKS = TrainingBlocks()
