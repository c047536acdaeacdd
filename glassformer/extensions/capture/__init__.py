"""Capture: the attention of any PyTorch model, in whatever code, seen while the model is called."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="capture", needs=("maps",), names={"capture": "glassformer.extensions.capture.capture:capture"}
)
