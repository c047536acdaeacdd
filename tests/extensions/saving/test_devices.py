"""A command that loads a model has the option of a device: see `tests/transformer/test_devices.py`."""

from tests.transformer.devices import refused_without_cuda as refused_without_cuda


def test_picture_has_the_option(refused_without_cuda):
    assert refused_without_cuda("picture", "x", "--out", "x.svg")
