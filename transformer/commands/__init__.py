"""One module per command of `python -m transformer`, and options that several commands have.

A command's `add(parser)` declares its options and what runs it.
"""

import argparse
from pathlib import Path


def add_device(parser: argparse._ActionsContainer) -> None:
    """Declare the option."""
    said = "where the model computes: auto, cpu, cuda or cuda:N (default cpu)"
    parser.add_argument("--device", default="cpu", metavar="D", help=said)


def add_alignments(parser: argparse._ActionsContainer, files: str, spacing: str) -> None:
    """Declare `--alignments` with its help, and for each side how words become text; its help contains `{side}`."""
    parser.add_argument("--alignments", type=Path, nargs=3, metavar=("SRC", "TGT", "GOLD"), help=files)
    for side in ("source", "target"):
        spacings = ("spaced", "joined", "attached", "attached-french")  # as `SPACINGS` of `analysis.alignment` has them
        parser.add_argument(f"--{side}-text", choices=spacings, help=spacing.format(side=side))
