"""`Source` of models that are in this process's memory, by the names under which `serve` got them."""

from pathlib import Path
from typing import Final

from glassformer.extensions.live.app_server import MODELS
from glassformer.runs.sources import Source
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

HOLDS: Final = "live"


class LiveSource(Source):
    """What `serve` was given; every visitor of this server sees it."""

    holds = HOLDS

    def own(self) -> dict[str, Entry]:
        """All of them, the newest first."""
        return {name: _entry(name) for name in reversed(MODELS)}

    def at(self, name: str) -> Entry | None:
        """One of them."""
        return _entry(name) if name in MODELS else None

    def open(self, entry: Entry) -> Checkpoint:
        """It is open already."""
        return MODELS[entry.name]

    def opened(self, content_hash: str) -> Checkpoint | None:
        """The same by its hash."""
        return next((one for one in MODELS.values() if one.content_hash == content_hash), None)

    def label(self, entry: Entry) -> str | None:
        """The name, marked as a model in memory."""
        return say("{name} (in memory)", name=entry.name) if entry.holds == HOLDS else None


def _entry(name: str) -> Entry:
    return Entry(name, Path(name), None, name, Path(name), examples=MODELS[name].card.examples[:1], holds=HOLDS)


SOURCE = LiveSource()
