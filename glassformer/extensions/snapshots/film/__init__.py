"""The part that snapshots add to the Attention page, for checkpoints with snapshots."""

from glassformer.runs.picture import PartEntry
from transformer.checkpoint.snapshots import steps
from transformer.i18n import say

PART = PartEntry(
    "training",
    say("Over training"),
    "glassformer.extensions.snapshots.film.film_panel:draw",
    page="attention",
    still=True,
    is_there=lambda run: run.checkpoint is not None and bool(steps(run.checkpoint.folder)),
)
