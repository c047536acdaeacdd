"""Command `python -m transformer import`: options, answers given or ranked, printed questions, checkpoint folder.

Nothing is written while questions are open: the report lists them. With `--pairs` the answers are ranked, or decided.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from transformer.errors import CheckpointError

if TYPE_CHECKING:
    from glassformer.extensions.importers.library.report import Imported, ImportReport

_MOST = 12  # choices of a field that are listed


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument(
        "source",
        type=Path,
        help="folder of Hugging Face's transformers with its config.json, or a file of weights (safetensors, "
        "torch.save or numpy.savez, under any name), or a folder with one and its tokenizer",
    )
    parser.add_argument("--out", type=Path, required=True, help="checkpoint folder to write, new or empty")
    add_given(parser)
    parser.add_argument(
        "--save-card", type=Path, metavar="F", help="write the answers as a card, for other files of the same code"
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="F",
        help="text file to try answers on, with one `source TAB target` or one source per line; without a tokenizer, "
        "ids such as 12 7 5",
    )


def add_given(parser: argparse._ActionsContainer) -> None:
    """Declare what a user says of a model of another program."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="answers",
        help="answer a question by the field's name in config.json, such as n_heads=4; may be repeated",
    )
    parser.add_argument(
        "--usual",
        action="store_true",
        help="answer open questions with the default of the code that such files usually come from, where it has one",
    )
    tokenizer = (
        "a SentencePiece model, a tokenizer.json, a vocab.json next to its merges.txt, BERT's vocab.txt, or a list "
        'of characters or words: a .txt with one per line, or a .json such as {"a": 4, "b": 5}'
    )
    parser.add_argument("--source-pieces", type=Path, metavar="F", help=f"the source's tokenizer: {tokenizer}")
    parser.add_argument("--target-pieces", type=Path, metavar="F", help="the target's tokenizer")
    parser.add_argument("--pieces", type=Path, metavar="F", help="one tokenizer for both sides")
    parser.add_argument("--card", type=Path, metavar="F", help="card of the code's names, which --save-card wrote")


def settled(source: Path, options: argparse.Namespace) -> "tuple[dict[str, Any], Imported]":
    """The answers of `--set`, those that pairs decide, and usual ones if they are wanted; and what they make of it."""
    from glassformer.extensions.importers.library.import_inputs import ImportInputs
    from glassformer.extensions.importers.library.kept_answers import as_said
    from glassformer.extensions.importers.library.opening import preview

    given = ImportInputs(options.source_pieces, options.target_pieces, options.pieces, options.pairs, options.card)
    said = answers_of(options.answers)
    imported = preview(source, answers=said, given=given)
    by_pairs, said = imported.report, said | imported.report.decided
    while options.usual and (usual := imported.report.usual):
        taken = ", ".join(f"{name}={as_said(one)}" for name, one in usual.items())
        print(f"usual values taken: {taken}", file=sys.stderr)
        said |= usual
        imported = preview(source, answers=said, given=replace(given, pairs=None))
        imported = replace(imported, report=imported.report.ranked(by_pairs))
    return said, imported


def answers_of(given: Iterable[str]) -> dict[str, Any]:
    """The values of `--set FIELD=VALUE`: JSON, else a text; a CheckpointError for another form or a field set twice."""
    from glassformer.extensions.importers.library.kept_answers import value_of

    answers: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name or not text:
            raise CheckpointError(
                "--set: found {found}, expected FIELD=VALUE, for example n_heads=4.", found=one[:80] or '""'
            )
        if name in answers:
            raise CheckpointError("--set: {field} has two answers; remove one.", field=name)
        answers[name] = value_of(text)
    return answers


def keep_answers(source: Path, answers: Mapping[str, Any]) -> str:
    """Keep answers that opened a model, with those that are kept already; what became of that, to be printed."""
    from glassformer.extensions.importers.library.kept_answers import read, write
    from glassformer.extensions.importers.library.opening import kind_of

    place = kind_of(source)[1]
    kept = read(place)
    folder = place if place.is_dir() else place.parent
    if {**kept.answers, **answers} == kept.answers:
        return f"answers read from {folder / kept.file}" if kept.answers else ""
    try:
        path = write(place, {**kept.answers, **answers})
    except OSError as error:
        return f"the answers could not be kept in {folder}: {error.strerror}"
    return f"answers kept in {path}, and read from there the next time"


def _run(options: argparse.Namespace) -> None:
    from glassformer.extensions.importers.library.cards import write
    from glassformer.extensions.weight_files import pickles
    from transformer.checkpoint.save import save

    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise CheckpointError(
            "{folder} already exists and is not an empty folder; choose a new or an empty one.", folder=str(options.out)
        )
    with pickles.whole_model():  # opened to look, to try answers and to write
        answers, imported = settled(options.source, options)
        print(imported.report)
        if imported.parts is None:
            raise _unwritten(imported.report)
        if options.save_card is not None:
            write(imported, options.save_card)
            print(f"card written: {options.save_card}")
        save(imported.parts, options.out)
        if said := keep_answers(options.source, answers):
            print(said)
    print(f"written: {options.out}")


def _unwritten(report: "ImportReport") -> CheckpointError:
    """What keeps a model from being written, with the questions printed."""
    from glassformer.extensions.importers.library.opening import obstacle

    if report.lacks_embeddings or not report.asked:
        return obstacle(report)
    return CheckpointError("{problem} Nothing was written.", problem=print_questions(report).sentence)


def print_questions(report: "ImportReport", *, file: TextIO | None = None) -> CheckpointError:
    """Print what is asked, in the form of answers; the error says how much it is."""
    from glassformer.extensions.importers.library.answer_ranking import best_answers
    from glassformer.extensions.importers.library.import_inputs import MAY_BE_NONE
    from glassformer.extensions.importers.library.kept_answers import as_said

    print("\nTo be answered:", file=file)
    for field in report.asked:
        choices = [as_said(one.value) + ("" if one.score is None else f" ({one.score:.3f})") for one in field.choices]
        listed = ", ".join([*choices[:_MOST], *["..."] * (len(choices) > _MOST)]) or "any value of the field"
        listed = "an id, or null for none" if field.name in MAY_BE_NONE and not choices else listed
        usual = "".join(f"  (usual: {as_said(one)})" for one in field.usual)
        print(f"  --set {field.name}=...  {listed}{usual}", file=file)
    best = best_answers(report)
    if best:
        print("Best together, by the loss in brackets:", file=file)
        print("  " + " ".join(f"--set {name}={as_said(value)}" for name, value in best.items()), file=file)
    if report.usual:
        taken = " ".join(f"--set {name}={as_said(value)}" for name, value in report.usual.items())
        print(f"--usual takes what is usual: {taken}", file=file)
    return CheckpointError(
        "{n} field listed above needs an answer; give it with --set.",
        "{n} fields listed above need answers; give them with --set.",
        len(report.asked),
    )
