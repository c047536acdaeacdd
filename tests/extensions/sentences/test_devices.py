"""A command that loads a model has the option of a device: see `tests/transformer/test_devices.py`."""

from tests.transformer.devices import refused_without_cuda as refused_without_cuda


def test_sentences_has_the_option(checkpoint_folder, refused_without_cuda):
    file = str(checkpoint_folder / "config.json")
    assert refused_without_cuda("sentences", file)
