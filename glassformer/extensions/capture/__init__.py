"""Capture: the attention that any PyTorch model computes, whoever wrote it, seen while it is called."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="capture", needs=("maps",), names={"capture": "glassformer.extensions.capture.capture:capture"}
)
