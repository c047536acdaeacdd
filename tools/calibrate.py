"""Measure on the shipped checkpoints the numbers that sentences of the doctor quote, and write them down.

    python -m tools.calibrate    after a shipped checkpoint was trained again, or a test changed

It takes half a minute. `extensions.doctor.library.findings` reads the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

from glassformer.extensions.doctor.library.findings import FILE, Finding
from glassformer.extensions.doctor.library.report import examine
from transformer.checkpoint.load import load

SHIPPED: Final = Path(__file__).resolve().parents[1] / "checkpoints"
QUOTED: Final = (
    "initial", "rank", "drawn_layers", "balance", "positions", "source",
    "dead_heads", "equal_heads", "uniform_heads", "dead_neurons", "collapsed_embeddings", "unknown_pieces",
)  # fmt: skip
"""Tests whose sentences quote their numbers."""


def shipped() -> list[str]:
    """The names of the shipped checkpoints."""
    return sorted(one.parent.name for one in SHIPPED.glob("*/config.json"))


def numbers_of(findings: Sequence[Finding]) -> dict[str, float]:
    """The quoted numbers of a checkpoint, by test; of tests that find something, or do not apply, none."""
    well = [(one.test, one.measured) for one in findings if one.test in QUOTED and one.verdict == "well"]
    numbers = [(test, found.number) for test, found in well] + [
        (f"{test}.beside", found.beside) for test, found in well
    ]
    return {test: number for test, number in numbers if number is not None}


if __name__ == "__main__":
    torch.set_num_threads(1)
    hashes, numbers = dict[str, str](), dict[str, dict[str, float]]()
    for checkpoint in (load(SHIPPED / name) for name in shipped()):
        hashes[checkpoint.name] = checkpoint.content_hash
        for test, number in numbers_of(examine(checkpoint).findings).items():
            numbers.setdefault(test, {})[checkpoint.name] = float(f"{number:.5g}")
    FILE.write_text(json.dumps({"checkpoints": hashes, "numbers": numbers}, indent=1) + "\n", encoding="utf-8")
    print(f"written: {FILE}")
