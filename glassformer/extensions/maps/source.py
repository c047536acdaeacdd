"""Files of attention maps where a page wants a checkpoint."""

from charts.theme import shortened
from glassformer.extensions.maps.format import HOLDS
from transformer.checkpoint.listing import Entry
from ui.runs.sources import Source
from words import say

LONGEST_TITLE = 120


class MapsSource(Source):
    """Files of maps in the folders of checkpoints."""

    holds = HOLDS

    def label(self, entry: Entry) -> str | None:
        """That it is no model."""
        return say("{name} (maps)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """What they are of."""
        if entry.holds != HOLDS or entry.error is not None:
            return None
        title = shortened(entry.title, limit=LONGEST_TITLE)
        return ":material/grid_on:", say("attention maps: {title}", title=title)


SOURCE = MapsSource()
