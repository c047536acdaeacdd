"""Snapshots: a slider over the training of a checkpoint, and what a run comes to at each of its snapshots."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="snapshots",
    charts={name: f"glassformer.extensions.snapshots.charts.film:{name}" for name in ("film", "film_spec")},
    sources="glassformer.extensions.snapshots.ahead:SOURCE",
    parts="glassformer.extensions.snapshots.film:PART",
    blocks="glassformer.extensions.snapshots.slider:BLOCKS",
    components={"moments": "components/moments/view.js"},
)
