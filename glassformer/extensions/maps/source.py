"""Files of attention maps where a page wants a checkpoint."""

from glassformer.extensions.maps.format import HOLDS
from transformer.checkpoint.listing import Entry
from ui.runs.sources import Source
from words import say


class MapsSource(Source):
    """Files of maps in the folders of checkpoints."""

    holds = HOLDS

    def label(self, entry: Entry) -> str | None:
        """That it is no model."""
        return say("{name} (maps)", name=entry.name) if entry.holds == HOLDS else None


SOURCE = MapsSource()
