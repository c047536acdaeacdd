"""What whoever runs the server says, on its command line or in the environment, such as where models compute.

    streamlit run app.py -- --device cuda               or        GLASSFORMER_DEVICE=cuda

Models compute on the processor unless it is said.
"""

import itertools
import os
import sys
from collections.abc import Sequence

import torch

from transformer.checkpoint.free_memory import CPU, device_of

DEVICE = "GLASSFORMER_DEVICE", "--device"


def device(arguments: Sequence[str] | None = None) -> torch.device:
    """Where every model of the app computes. A CheckpointError if there is no such device here."""
    return device_of(said(arguments, *DEVICE) or CPU)


def said(arguments: Sequence[str] | None, environment: str, option: str) -> str | None:
    """What whoever runs the server said, as it was written; None if nothing. The command line comes first."""
    given = values(option, arguments)
    return given[-1] if given else os.environ.get(environment) or None


def values(option: str, arguments: Sequence[str] | None = None) -> list[str]:
    """What the app's command line says of an option, each time; the real one when none is given."""
    words = sys.argv[1:] if arguments is None else arguments
    given = [after for word, after in itertools.pairwise(words) if word == option]
    return given + [word.removeprefix(f"{option}=") for word in words if word.startswith(f"{option}=")]
