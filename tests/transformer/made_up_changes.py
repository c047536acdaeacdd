"""A kind of change that no extension has, for tests of what the kernel does with changes of any kind."""

from collections.abc import Iterator

import pytest
import torch

from transformer.i18n import say
from transformer.model.config import MAX_LAYERS, MAX_WIDTH
from transformer.model.taps import Hook
from transformer.runs import interventions
from transformer.runs.interventions import Ground
from transformer.runs.interventions.fields import place
from transformer.runs.interventions.targets import AtPlace, HeadChange


class SilentHead(HeadChange):
    """One head writes nothing."""

    layer: int = place("Layer", MAX_LAYERS, what="layer")
    head: int = place("Head", MAX_WIDTH, what="head")

    word = "silent"
    title = say("A silent head")
    about = say("Made up.")

    def told(self) -> str:
        """As a page says it."""
        return f"{self.name}: silent"

    def visitors(self, ground: Ground) -> tuple[Hook, ...]:
        """Zeros in the place of its output."""
        site = f"{self.where(ground.config)}.heads"
        return (AtPlace(site, lambda heads, _: torch.zeros_like(heads), head=self.head),)


@pytest.fixture(scope="module")
def made_up_changes() -> Iterator[None]:
    """Addresses and JSON may name it."""
    provided = interventions.provided
    kinds = {SilentHead.word: SilentHead}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interventions, "provided", lambda name: (*provided(name), *((kinds,) * (name == "changes"))))
        yield
