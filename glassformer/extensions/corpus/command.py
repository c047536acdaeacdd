"""Command `python -m transformer corpus`: options, checks, processes or Ray, progress, and report of a corpus run."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.checkpoint.named import named
from transformer.commands import add_alignments, add_device
from transformer.errors import DataError

if TYPE_CHECKING:
    from glassformer.extensions.corpus.library.lines import Corpus
    from glassformer.extensions.corpus.library.scores import Figure
    from glassformer.extensions.corpus.library.shards import Files, Plan
    from glassformer.extensions.corpus.library.tables import CorpusOptions
    from transformer.checkpoint.load import Checkpoint

MOST_REASONS = 5  # for lines that were left out
MOST_PROCESSES = 256


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=named, help="a folder or name of a checkpoint, or a model that `load` opens")
    parser.add_argument("--pairs", type=Path, metavar="FILE", help="source TAB reference, or one text, per line")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a folder for the tables of runs")
    parser.add_argument("--max-pairs", type=int, metavar="N", help="measure only the first N lines")
    what = parser.add_argument_group("what is measured")
    what.add_argument("--decode", action="store_true", help="the model's own greedy output instead of the reference")
    what.add_argument("--effect", action="store_true", help="also what is lost without each head; takes long")
    what.add_argument(
        "--vectors", type=int, default=200, metavar="N", help="keep queries and keys of the first N lines (default 200)"
    )
    said = "instead of --pairs: sentences with gold word alignments, as for evaluate"
    add_alignments(what, said, "how {side} words become text (default: usual for the card's {side}_code)")
    how = parser.add_argument_group("how")
    add_device(how)
    how.add_argument("--processes", type=int, metavar="N", help="processes (default: one per core; on a GPU one)")
    how.add_argument("--engine", choices=("pool", "ray"), default="pool", help="what starts them (default pool)")
    how.add_argument("--address", metavar="A", help="of a Ray cluster, for --engine ray")
    how.add_argument("--shard", type=int, default=2_000, metavar="N", help="lines of a shard (default 2000)")


def _run(options: argparse.Namespace) -> None:
    import torch

    from glassformer.extensions.corpus.library.shards import claimed, plan
    from transformer.checkpoint.opening import load

    wanted = _options(options)
    processes = _processes(options)
    torch.set_num_threads(1)
    checkpoint = load(options.checkpoint, device=options.device)
    _check_fits(checkpoint, options)
    corpus = _corpus(checkpoint, options)
    run = plan(checkpoint, options.checkpoint.resolve(), corpus, wanted, out=options.out, most=options.max_pairs)
    with claimed(run):
        for name in run.damaged():
            print(f"{name} is damaged; its lines are measured again.")
        there = sum(run.counts[number] for number in run.done())
        if there:
            print(f"{there:,} of {run.about['lines']:,} lines are there already.")
        began = time.monotonic()
        n_lines = _measure(run, options, processes=processes, there=there)
        seconds = time.monotonic() - began
        run.close()
    _report(run, options.out)
    if n_lines:
        print(f"{n_lines:,} lines in {seconds:.1f} s: {n_lines / seconds:,.0f} sentences a second.")


def _processes(options: argparse.Namespace) -> int:
    from transformer.checkpoint.free_memory import device_of

    on_gpu = device_of(options.device).type != "cpu"
    if options.address and options.engine != "ray":
        raise DataError("--address is of a Ray cluster; add --engine ray, or leave it out.")
    return options.processes or (1 if on_gpu else min(os.cpu_count() or 1, MOST_PROCESSES))


def _options(options: argparse.Namespace) -> CorpusOptions:
    from glassformer.extensions.corpus.library.tables import CorpusOptions

    if (options.pairs is None) == (options.alignments is None):
        raise DataError("give either --pairs FILE or --alignments SRC TGT GOLD.")
    if options.alignments and options.decode:
        raise DataError("--alignments link the references; leave out --decode.")
    for name, least, most in (("vectors", 0, 5_000), ("shard", 1, 100_000), ("processes", 1, MOST_PROCESSES)):
        found = getattr(options, name)
        if found is not None and not least <= found <= most:
            raise DataError(
                "{name}: found {found}, expected {least:,} to {most:,}.",
                name=f"--{name}",
                found=found,
                least=least,
                most=most,
            )
    return CorpusOptions(decode=options.decode, effect=options.effect, vectors=options.vectors, shard=options.shard)


def _check_fits(checkpoint: Checkpoint, options: argparse.Namespace) -> None:
    if options.decode and not checkpoint.model.anatomy.writes:
        raise DataError("--decode: {name} is encoder-only, so it writes nothing; leave it out.", name=checkpoint.name)
    if options.alignments:
        checkpoint.model.anatomy.attention("cross")


def _corpus(checkpoint: Checkpoint, options: argparse.Namespace) -> Corpus:
    from glassformer.extensions.corpus.library import lines
    from transformer.analysis.alignment import usual_spacing

    if options.pairs:
        empty = 0 if options.max_pairs else lines.n_empty(options.pairs)
        if empty:
            print(f"{empty:,} of the lines of {options.pairs} are empty and left out.")
        return lines.pairs(options.pairs, most=options.max_pairs)
    card = checkpoint.card
    return lines.aligned(
        options.alignments,
        source_text=options.source_text or usual_spacing(card.source_code),
        target_text=options.target_text or usual_spacing(card.target_code),
        most=options.max_pairs,
    )


def _measure(run: Plan, options: argparse.Namespace, *, processes: int, there: int) -> int:
    """Measure what is missing, and write it; returns how many lines that were."""
    measured, missing = 0, len(run.digests) - len(run.done())
    if not missing:
        return 0
    try:
        with _bar(run.about["lines"], there) as bar:
            for number, files in _engine(run, options, min(processes, missing)):
                run.write(number, files)
                measured += run.counts[number]
                bar.update(run.counts[number])
    except KeyboardInterrupt:
        there += measured
        raise KeyboardInterrupt(
            f"{there:,} of {run.about['lines']:,} lines are there; the same command continues."
        ) from None
    return measured


def _engine(run: Plan, options: argparse.Namespace, processes: int) -> Iterator[tuple[int, Files]]:
    from glassformer.extensions.corpus.library import pool

    if options.engine == "ray":
        return pool.measured_with_ray(run.job, run.missing(), processes=processes, address=options.address)
    return pool.measured(run.job, run.missing(), processes=processes)


def _bar(total: int, there: int) -> Any:
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no thread of its own: processes are forked
    return tqdm(total=total, initial=there, unit="sentence", mininterval=0.5)


def _report(run: Plan, out: Path) -> None:
    from glassformer.extensions.corpus.library.scores import diagonal, scores

    found = scores(run.folder)
    print(f"{run.about['checkpoint']} over {', '.join(run.about['files'])}: {found.n_lines:,} lines, 95 % intervals")
    for name, figure, form in (
        ("loss, nats per token", found.loss, ".4f"),
        ("exact", found.exact, ".2%"),
        ("BLEU", found.bleu, ".2f"),
        ("chrF", found.chrf, ".2f"),
    ):
        if figure:
            print(f"  {name:<22}{_said(figure, form)}")
    if found.heads:
        print("  Alignment error rate, by the row that predicts a token; by the row that reads it:")
    for head in found.heads:
        print(
            f"    layer {head.layer}, head {head.head:<3}  {_said(head.predicts, '.1%')};  {_said(head.reads, '.1%')}"
        )
    if found.heads and run.corpus.gold:
        print(f"    without a model, by the same relative place  {diagonal(run.folder, run.corpus.gold):.1%}")
    for reason, n in list(found.left_out.items())[:MOST_REASONS]:
        print(f"  {n:,} left out: {reason}")
    others = list(found.left_out.values())[MOST_REASONS:]
    if others:
        print(f"  {sum(others):,} left out for {len(others):,} other reasons: see `problem` in the sentences' tables")
    print(f"The tables are in {run.folder}.")
    print(f"In the app, on the page Over a corpus: GLASSFORMER_CORPORA={out.resolve()} make run")


def _said(figure: Figure, form: str) -> str:
    return f"{figure.value:{form}}  ({figure.low:{form}} to {figure.high:{form}})"
