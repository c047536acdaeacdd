"""`python -m transformer sentences`: options, running a file of sentences, printed lines and summary, CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.checkpoint.named import named
from transformer.commands import add_device
from transformer.errors import DataError
from transformer.text.cells import write_csv

if TYPE_CHECKING:
    from glassformer.extensions.sentences.line_runs import LineResult, Summary


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=named, help="a folder or name of a checkpoint, or a model that `load` opens")
    parser.add_argument("file", type=Path, help="one source per line, or source TAB reference")
    parser.add_argument("--csv", type=Path, metavar="OUT.csv", help="write the whole table")
    parser.add_argument("--beam", type=int, default=0, metavar="N", help="number of beams (default: greedy)")
    parser.add_argument("--max-new", type=int, default=128, metavar="N", help="most tokens to write (default 128)")
    parser.add_argument("--force", action="store_true", help="replace an existing OUT.csv")
    add_device(parser)


def _run(options: argparse.Namespace) -> None:
    import torch

    from glassformer.extensions.sentences.line_runs import as_csv, check_can_run, run_lines, summary
    from transformer import Beam, Greedy, Query, load
    from transformer.runs.sentence_files import read_file

    _check_csv(options)
    lines = read_file(options.file)
    checkpoint = load(options.checkpoint, device=options.device)
    check_can_run(checkpoint)
    how = Query(
        checkpoint=checkpoint.content_hash,
        source="",
        decoding=Beam(size=options.beam) if options.beam else Greedy(),
        max_new=options.max_new,
    )
    results: list[LineResult] = []
    torch.set_num_threads(1)  # as in the app: numbers stay the same, and a few sentences are too little work to share
    for result in run_lines(checkpoint, lines, how):
        results.append(result)
        if sys.stderr.isatty():
            end = "\n" * (len(results) == len(lines))
            print(f"\r{len(results):,} of {len(lines):,} lines", end=end, file=sys.stderr, flush=True)
    if options.csv:
        write_csv(options.csv, as_csv(results))
        print(f"The table stands in {options.csv}.")
    else:
        _print(results)
    _print_summary(summary(results))
    failed = sum(one.problem is not None for one in results)
    if failed:
        raise DataError("{failed} of {total} lines could not be run.", failed=failed, total=len(results))


def _check_csv(options: argparse.Namespace) -> None:
    if options.csv and not options.csv.parent.is_dir():
        raise DataError("{file}: its folder does not exist; create it first.", file=str(options.csv))
    if options.csv and options.csv.exists() and not options.force:
        raise DataError("{file}: already exists; choose another file, or add --force.", file=str(options.csv))


def _print(results: list[LineResult]) -> None:
    for one in sorted(results, key=lambda one: one.line.number):
        if one.problem is not None:
            print(f"error: line {one.line.number}: {one.problem}", file=sys.stderr)
            continue
        numbers = [_number("log-probability per token", one.mean_log_prob), _number("chrF", one.chrf)]
        said = "; ".join([*filter(None, numbers), *["cut"] * (one.ended is False)])
        print(one.line.number, one.line.source, one.output, said, sep="\t")


def _print_summary(found: Summary) -> None:
    print(f"{found.n - found.n_failed:,} of {found.n:,} lines.")
    named = {
        "chrF of all": found.chrf,
        "log-probability per token, in nats": found.log_prob,
        "entropy, in bits": found.entropy,
        "length ratio (tokens written / read)": found.length_ratio,
        "repeated pairs of tokens (%)": _percent(found.repeated),
        "ended by themselves (%)": _percent(found.ended),
        "unknown tokens (%)": _percent(found.unknown),
    }
    for name, value in named.items():
        if value is not None:
            print(f"  {name}: {value:.2f}")


def _number(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} {value:.2f}"


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
