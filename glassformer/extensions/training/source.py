"""What is trained here where a page wants a checkpoint."""

from glassformer.extensions.training import ahead, own_trainings
from glassformer.runs import loading
from glassformer.runs.sources import Source
from glassformer.server import replicas
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.snapshots import AT
from transformer.i18n import Sentence, say


class TrainingSource(Source):
    """Checkpoints of trainings, also of those that go on; and what comes next of any checkpoint's snapshots."""

    def own(self) -> dict[str, Entry]:
        """What this session trains or has trained."""
        return own_trainings.own()

    def folder(self, name: str) -> Entry | None:
        """What a training has written."""
        return own_trainings.at(name)

    def label(self, entry: Entry) -> str | None:
        """That it is trained here."""
        return say("{title} (trained here)", title=entry.title) if own_trainings.is_name(entry.name) else None

    def gone(self, name: str, instead: str) -> Sentence | None:
        """Trainings are kept for a while."""
        return replicas.gone(own_trainings.GONE) if own_trainings.is_name(name) else None

    def changes(self, name: str) -> bool:
        """A training that goes on writes better checkpoints."""
        return own_trainings.is_name(name)

    def ran(self, slot: Slot, link: Link) -> None:
        """Have the snapshots beside the one that is looked at run, too."""
        if AT in link.model:
            ahead.AHEAD.wish((loading.visitor(), slot), ahead.neighbours(link.model), link)


SOURCE = TrainingSource()
