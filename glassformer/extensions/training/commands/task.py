"""`python -m transformer task`: write the files of a made-up task."""

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("name", choices=("reverse", "sort", "copy", "addition", "palindrome"))
    parser.add_argument("--out", type=Path, required=True, help="folder for train.tsv, dev.tsv and test.tsv")


def _run(options: argparse.Namespace) -> None:
    from glassformer.extensions.training.library.tasks import write_task

    write_task(options.name, options.out)
