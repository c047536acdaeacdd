"""Snapshots: a slider over the training of a checkpoint, and what a run comes to at each of its snapshots."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="snapshots",
    sources="glassformer.extensions.snapshots.snapshot_run_jobs:SOURCE",
    parts="glassformer.extensions.snapshots.snapshot_runs:PART",
    blocks="glassformer.extensions.snapshots.snapshot_slider:BLOCKS",
    components={"moments": "components/moments/view.js"},
)
