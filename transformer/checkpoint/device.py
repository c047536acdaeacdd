"""Where a model computes: on the processor, or on a GPU that torch reaches by CUDA.

A model's parameters are on its device. `Transformer` brings there whatever it is given, and a `Recorder` brings what
it keeps back to the processor, so what runs and examines models need not know of devices.
"""

from typing import Final

import torch

from transformer.errors import CheckpointError, shown
from transformer.i18n import say_n

Device = str | torch.device
"""A name, such as "cuda:1", or the device itself."""

CPU: Final = torch.device("cpu")


def device_of(device: Device) -> torch.device:
    """The device of a name: "cpu", "cuda", "cuda:1", or "auto", a GPU if there is one.

    A `CheckpointError` says that there is no such device here. One that is not a name is taken as it is.
    """
    if isinstance(device, torch.device):
        return device
    name, colon, number = device.partition(":")
    if device in ("auto", "cpu"):
        return CPU if device == "cpu" or not torch.cuda.is_available() else torch.device("cuda")
    if name != "cuda" or bool(colon) != number.isdecimal():
        raise CheckpointError(
            "device {name}: it must be auto, cpu, cuda, or cuda: with a GPU's number.", name=shown(device)
        )
    if not torch.cuda.is_available():
        raise CheckpointError("device {name}: torch finds no CUDA device here; use cpu or auto.", name=device)
    if int(number or 0) >= (count := torch.cuda.device_count()):
        raise CheckpointError(
            say_n(
                "device {name}: there is {n} GPU, and numbers begin with 0.",
                "device {name}: there are {n} GPUs, and numbers begin with 0.",
                count,
                name=device,
            )
        )
    return torch.device(device)
