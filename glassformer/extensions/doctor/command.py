"""Command `python -m transformer doctor`: options, examination of a model, printed report, questions, exit status."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.extensions.importers.import_command import add_given
from transformer.checkpoint.named import named
from transformer.commands import add_device
from transformer.i18n import Sentence

if TYPE_CHECKING:
    from glassformer.extensions.doctor.library.report import Report
    from glassformer.extensions.importers.library.report import Imported

BROKEN, NOT_TESTED = 1, 3
SMALL = 50_000_000  # parameters up to which threads wait for each other longer than they compute


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.epilog = (
        "Exit status: 0 if nothing is broken, 1 if something is, 2 where it cannot be examined, 3 where nothing "
        "was found but whether it does its task was not tested, for want of pairs."
    )
    about = "a checkpoint folder, a name such as zh-en, or a model that `import` understands"
    parser.add_argument("checkpoint", type=named, help=about)
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="F",
        help="text file with one `source TAB target` or one text per line, of which 12 are used (default: the "
        "card's examples)",
    )
    parser.add_argument("--seed", type=int, default=0, help="decides which texts are used (default 0)")
    parser.add_argument(
        "--reported", type=float, metavar="LOSS", help="the loss that training reported, in nats per token"
    )
    add_device(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--brief", action="store_true", help="print the headline and one line for each finding")
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument("--markdown", action="store_true", help="print the report as Markdown, to paste into a thread")
    foreign = parser.add_argument_group("models of other programs")
    add_given(foreign)


def _run(options: argparse.Namespace) -> int:
    import torch

    from glassformer.extensions.doctor.library.report import examine
    from glassformer.extensions.importers.import_command import answers_of, keep_answers, settled
    from glassformer.extensions.importers.library.import_inputs import ImportInputs
    from glassformer.extensions.importers.library.opening import QuestionsError
    from transformer.analysis.losses import read_samples
    from transformer.checkpoint.opening import load

    pairs = None if options.pairs is None else read_samples(options.pairs)
    given = ImportInputs(options.source_pieces, options.target_pieces, options.pieces, card=options.card)
    answers = answers_of(options.answers)
    try:
        checkpoint = load(options.checkpoint, answers=answers, given=given, device=options.device)
    except QuestionsError:
        answers, imported = settled(options.checkpoint, options)
        print(*imported.report.decisions, sep="\n", end="\n" * bool(imported.report.decisions), file=sys.stderr)
        if imported.content is None:
            return _unopened(options, imported)
        checkpoint = load(options.checkpoint, answers=answers, given=given, device=options.device)
    if said := keep_answers(options.checkpoint, answers):
        print(said, file=sys.stderr)
    if checkpoint.config.count_parameters() <= SMALL:
        torch.set_num_threads(1)
    report = examine(checkpoint, pairs=pairs, seed=options.seed, reported=options.reported, progress=_told)
    if sys.stderr.isatty():
        print(f"\r{'':<70}\r", end="", file=sys.stderr, flush=True)
    _print(report, options)
    return {"broken": BROKEN, "not_tested": NOT_TESTED}.get(report.health, 0)


def _unopened(options: argparse.Namespace, imported: "Imported") -> int:
    """Print what can be said before the questions are answered, and them; raises the error that says how many."""
    from glassformer.extensions.doctor.library.report import examine_unopened
    from glassformer.extensions.importers.import_command import print_questions

    if imported.tensors is not None:
        _print(examine_unopened(imported.report, imported.tensors), options)
    raise print_questions(imported.report, file=sys.stderr if options.json or options.markdown else sys.stdout)


def _print(report: "Report", options: argparse.Namespace) -> None:
    if options.json:
        print(report.to_json(), end="")
    else:
        print(report.to_markdown() if options.markdown else report.brief() if options.brief else report)


def _told(done: int, whole: int, title: Sentence) -> None:
    """Progress, on one line of a terminal; nobody reads it in a file."""
    if sys.stderr.isatty():
        print(f"\r{f'{done + 1} of {whole}: {title}'[:70]:<70}", end="", file=sys.stderr, flush=True)
