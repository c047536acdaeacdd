"""A checkpoint with snapshots of its training, made on the spot: from noise to the shipped `reverse`."""

import shutil
from pathlib import Path

import torch

from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import Moment, write

REVERSE = Path(__file__).parents[2] / "checkpoints" / "reverse"
SHARES = {0: 0.0, 9: 0.2, 90: 0.6, 900: 1.0}
"""Of each step, how much of a parameter is that of the finished model; the rest is noise."""


def grown(root: Path, name: str = "grown") -> Path:
    """Write the checkpoint as a folder of `root`, its snapshots beside it, and return its folder."""
    folder = root / name
    shutil.copytree(REVERSE, folder)
    noise = torch.Generator().manual_seed(2)
    for epoch, (step, share) in enumerate(SHARES.items()):
        state = {
            key: share * value + (1 - share) * 0.1 * torch.randn(value.shape, generator=noise)
            for key, value in load(folder).model.state_dict().items()
        }
        told = {"loss": 4.5 - 4 * share, "dev_loss": 4.0 - 3.9 * share, "dev_exact": share, "dev_chrf": 100 * share}
        write(folder, state, Moment(step=step, epoch=epoch, tokens=10 * step, seconds=0.5 * step, **told))
    return folder
