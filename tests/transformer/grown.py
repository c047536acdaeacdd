"""A checkpoint with snapshots, made on the spot: from noise, in even parts, to the shipped model of letters."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import torch

from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import FOLDER, SnapshotInfo, write

ROOT = Path(__file__).resolve().parents[2]
NAME = "grown"
STEPS = (0, 10, 219, 1200, 2208)


def write_grown(root: Path, name: str = NAME) -> Path:
    """Write the checkpoint and its snapshots into a folder, and return that, for `--checkpoints`."""
    for folder in ("", FOLDER):
        shutil.copytree(Path(_made().name) / f"{NAME}{folder}", root / f"{name}{folder}")
    return root


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    """Made once a process, as it takes a second, and copied."""
    made = tempfile.TemporaryDirectory()
    folder = Path(made.name) / NAME
    shutil.copytree(ROOT / "checkpoints" / "reverse", folder)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"title": "Grown letters"}), encoding="utf-8")
    for step in STEPS:
        write_snapshot(folder, step, share=STEPS.index(step) / (len(STEPS) - 1))
    return made


def write_snapshot(folder: Path, step: int, *, share: float) -> None:
    """Write a snapshot of which so much, 0 to 1, is the checkpoint and the rest is noise."""
    state = load(folder).model.state_dict()
    seeded = torch.Generator().manual_seed(step)
    noise = {name: torch.randn(value.shape, generator=seeded) * value.std() for name, value in state.items()}
    moment = SnapshotInfo(
        step=step, epoch=step // 200, loss=4 - 3 * share, dev_loss=5 - 4 * share, dev_exact=share, tokens=100 * step
    )
    write(folder, {name: share * value + (1 - share) * noise[name] for name, value in state.items()}, moment)
