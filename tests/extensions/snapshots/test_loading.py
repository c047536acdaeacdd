"""A snapshot runs where its checkpoint does."""

from glassformer.extensions.snapshots import grown
from glassformer.runs import loading
from glassformer.server import switch
from tests.glassformer.runs.test_loading import forget as forget
from tests.glassformer.runs.test_loading import own as own
from tests.transformer.stand_in import DEVICE


def test_a_snapshot_is_on_the_device_of_the_app(own, monkeypatch):
    monkeypatch.setattr(switch, "device", lambda: DEVICE)
    loading.let_go(lambda which: True)
    there = loading.open_checkpoint(loading.usable()["reverse"])
    assert there.device == grown.opened(there, 1022).device == DEVICE
    loading.let_go(lambda which: True)
