"""A snapshot runs where its checkpoint does."""

from glassformer.extensions.snapshots import snapshot_runs
from glassformer.runs import loading
from glassformer.server import server_options
from tests.glassformer.runs.test_loading import forget as forget
from tests.glassformer.runs.test_loading import own as own
from tests.transformer.stand_in import DEVICE


def test_a_snapshot_is_on_the_device_of_the_app(own, monkeypatch):
    monkeypatch.setattr(server_options, "device", lambda: DEVICE)
    loading.let_go(lambda which: True)
    there = loading.open_checkpoint(loading.usable()["reverse"])
    assert there.device == snapshot_runs.opened(there, 1022).device == DEVICE
    loading.let_go(lambda which: True)
