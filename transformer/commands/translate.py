"""`python -m transformer translate`: translate lines of text."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer.errors import DataError

HELP = "translate lines of text"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint folder")
    parser.add_argument("lines", nargs="*", help="sentences; standard input, a line each, if there are none")
    parser.add_argument("--beam", type=int, default=0, help="beams; greedy without")
    parser.add_argument("--unseen-in", type=Path, help="refuse sentences that stand in this file of pairs")


def _run(options: argparse.Namespace) -> None:
    from transformer import Beam, Greedy, load

    lines = [line.strip() for line in (options.lines or sys.stdin) if line.strip()]
    if options.unseen_in:
        _refuse_seen(lines, options.unseen_in)
    checkpoint = load(options.checkpoint)
    decoding = Beam(size=options.beam) if options.beam else Greedy()
    for line in lines:
        print(line, checkpoint.run(checkpoint.query(line, decoding=decoding)).output_text, sep="\t", flush=True)


def _refuse_seen(lines: Sequence[str], pairs: Path) -> None:
    """Punctuation, spaces and case do not make a sentence another one, as in `prepare`."""
    from transformer.training.data import read_pairs
    from transformer.training.splitting import sentence_key

    seen = {sentence_key(source) for source, _ in read_pairs(pairs)}
    found = [line for line in lines if sentence_key(line) in seen]
    if found:
        raise DataError(
            "{count} of {total} sentences stand in {file}: {lines}",
            count=len(found),
            total=len(lines),
            file=pairs.name,
            lines=" ".join(found[:5]),
        )
