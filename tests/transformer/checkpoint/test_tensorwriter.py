"""Tensors are written one at a time, and as the safetensors library writes them all at once."""

import weakref
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
import torch
from safetensors.torch import save

from transformer.checkpoint.save import Held, n_bytes, write
from transformer.errors import CheckpointError

STATE = {
    "wide": torch.randn(5, 3),
    "tall": torch.randn(3, 7).t(),
    "é “name”": torch.randn(4),
    "one": torch.tensor(1.5),
    "none": torch.empty(0, 3),
    "odd": torch.randn(3).half().float(),
    "a": torch.randn(2, 3).bfloat16().float(),
}
NARROW = {"odd": torch.float16, "a": torch.bfloat16, "none": torch.float16}


@dataclass(frozen=True)
class Stream:
    """Tensors that exist only while they are written."""

    shapes: dict
    narrow: dict
    alive: list = field(default_factory=list)
    left_out: str = ""

    def read(self):
        for name in reversed(STATE):
            assert not any(one() is not None for one in self.alive)
            if name != self.left_out:
                tensor = STATE[name].clone()
                self.alive.append(weakref.ref(tensor))
                yield name, tensor
                del tensor


def stream(left_out=""):
    return Stream({name: tuple(tensor.shape) for name, tensor in STATE.items()}, NARROW, left_out=left_out)


def written(tmp_path, readable, dtype=None):
    with (tmp_path / "file").open("wb") as file:
        write(file, readable, dtype)
    return (tmp_path / "file").read_bytes()


def test_each_tensor_is_gone_before_the_next_and_the_bytes_are_those_of_the_library(tmp_path):
    expected = {name: tensor.to(NARROW.get(name, torch.float32)).contiguous() for name, tensor in STATE.items()}
    assert written(tmp_path, stream()) == save(expected)
    assert n_bytes(stream()) == sum(tensor.nbytes for tensor in expected.values())
    halves = {name: tensor.half().contiguous() for name, tensor in STATE.items()}
    assert written(tmp_path, stream(), torch.float16) == save(halves) == written(tmp_path, Held(STATE))


def test_a_tensor_that_never_comes_or_has_another_shape_is_noticed(tmp_path):
    with pytest.raises(ValueError, match="odd was announced and never came"):
        written(tmp_path, stream(left_out="odd"))
    readable = stream()
    readable.shapes["wide"] = (3, 5)
    with pytest.raises(ValueError, match="wide is"):
        written(tmp_path, readable)


def test_a_value_too_large_in_any_part_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.checkpoint.consistency.LOOKED_AT", 4)
    state = MappingProxyType({"table": torch.cat((torch.ones(9, 2), torch.full((1, 2), 1e6)))})
    with pytest.raises(CheckpointError, match=r"table: a value is too large for torch\.float16"):
        written(tmp_path, Held(state))
