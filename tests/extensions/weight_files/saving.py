"""Save what others would, and see it refused."""

import os

import torch

from glassformer.extensions.weight_files.weights import open_weights
from tests.extensions.refusing import refusal


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
    text = refusal(lambda: open_weights(path).__enter__(), message, f"{path}: ")
    assert "weights_only=False" not in text
    return text
