"""Names of snapshots such as `reverse@1200`, made and split into checkpoint and step; the record `SnapshotInfo`.

`reverse@1200` is the checkpoint as it was at step 1,200.
"""

import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = ".snapshots"  # after the name of the checkpoint
FILE = ".safetensors.xz"  # after the step
AT = "@"  # between the name of a checkpoint and a step
MAX_STEP = 2**53


@dataclass(frozen=True, kw_only=True)
class SnapshotInfo:
    """When a snapshot was taken, and how good the model was. Losses in nats a target token; None where not known."""

    step: int  # optimizer steps so far; 0 before the first
    epoch: int = 0  # the epoch that this step is in, from 1; 0 before the first
    tokens: int = 0  # target tokens so far
    seconds: float = 0.0  # of training so far
    loss: float | None = None  # in training, the mean of the last 50 steps
    dev_loss: float | None = None  # on the dev file
    dev_bleu: float | None = None  # 0 to 100
    dev_chrf: float | None = None  # 0 to 100
    dev_exact: float | None = None  # share of outputs that equal their reference
    learning_rate: float | None = None  # of this step


def folder_of(checkpoint: Path) -> Path:
    """The folder of the snapshots of a checkpoint folder."""
    return checkpoint.with_name(checkpoint.name + FOLDER)


def at_step(checkpoint: str, step: int) -> str:
    """The name of a checkpoint as it was at a step: `reverse@1200`."""
    return f"{checkpoint}{AT}{step}"


def split(name: str) -> tuple[str, int] | None:
    """The checkpoint and the step of a name such as `reverse@1200`; None if it names no step."""
    before, at, step = name.rpartition(AT)
    whole = at and before not in ("", ".", "..") and step.isascii() and step.isdigit() and len(step) <= 16
    return (before, int(step)) if whole and str(int(step)) == step and int(step) <= MAX_STEP else None


def meant(folder: Path) -> tuple[Path, int | None]:
    """The checkpoint folder and the step that `reverse@1200` means; no step where a folder has that very name."""
    named = None if os.path.lexists(folder) else split(folder.name)
    if named is None or not folder.with_name(named[0]).is_dir():
        return folder, None
    return folder.with_name(named[0]), named[1]
