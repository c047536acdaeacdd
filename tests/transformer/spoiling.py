"""Ways to spoil a checkpoint folder; see the fixture `spoil`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load as from_safetensors
from safetensors.torch import save as to_safetensors
from torch import Tensor

from transformer.checkpoint.load import load
from transformer.errors import CheckpointError


def refused(folder: Path, message: str) -> str:
    """The error of a spoilt folder: one line that names the file."""
    with pytest.raises(CheckpointError, match=message) as caught:
        load(folder)
    text = str(caught.value)
    assert text.startswith((str(folder), "spoilt"))
    assert "\n" not in text
    assert len(text) < 900
    return text


def config_with(**changes: Any) -> Callable[[bytes], bytes]:
    """Changes keys of config.json."""
    return lambda old: json.dumps(json.loads(old) | changes).encode()


def weights_with(change: Callable[[dict[str, Tensor]], object]) -> Callable[[bytes], bytes]:
    """Applies a function to the dictionary of tensors."""

    def edit(old: bytes) -> bytes:
        state = from_safetensors(old)
        change(state)
        return to_safetensors(state)

    return edit
