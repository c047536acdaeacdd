"""`--device`, for every command that loads a checkpoint."""

import argparse


def add_device(parser: argparse._ActionsContainer) -> None:
    """Declare the option."""
    said = "where the model computes: auto, cpu, cuda or cuda:N (default cpu)"
    parser.add_argument("--device", default="cpu", metavar="D", help=said)
