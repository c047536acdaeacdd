"""Files of tensors that are in memory."""

from io import BytesIO

import torch

from transformer.files import tensorfile


def header_of(content, *, label="x"):
    """What `read_header` says of a file."""
    return tensorfile.read_header(BytesIO(content), len(content), label=label)


def tensors_of(content):
    """All tensors of a file, as float32."""
    header = header_of(content)
    return {
        name: tensorfile.read_into(BytesIO(content), header, name, torch.empty(info.shape), label="x")
        for name, info in header.tensors.items()
    }
