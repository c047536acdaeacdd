"""Save what others would, and see it refused."""

import os

import pytest
import torch

from glassformer.extensions.weight_files.weights import open_weights
from transformer.errors import CheckpointError


class Touch:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def saved(path, content, **options):
    torch.save(content, path, **options)
    return path


def refused(path, message):
    with pytest.raises(CheckpointError, match=message) as caught, open_weights(path):
        pass
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert "weights_only=False" not in text
    assert len(text) < 500
    return text
