"""`python -m transformer import`: make a checkpoint folder of a model that another program saved.

Nothing is written while questions are open: the report lists them, and with `--pairs` ranks the answers.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.errors import CheckpointError
from transformer.i18n import say_n

if TYPE_CHECKING:
    from glassformer.extensions.importers.library.report import ImportReport

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
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="answers",
        help="answer a question by the field's name in config.json, such as n_heads=4; may be repeated",
    )
    tokenizer = (
        "a SentencePiece model, a tokenizer.json, a vocab.json next to its merges.txt, BERT's vocab.txt, or a list "
        'of characters or words: a .txt with one per line, or a .json such as {"a": 4, "b": 5}'
    )
    parser.add_argument("--source-pieces", type=Path, metavar="F", help=f"the source's tokenizer: {tokenizer}")
    parser.add_argument("--target-pieces", type=Path, metavar="F", help="the target's tokenizer")
    parser.add_argument("--pieces", type=Path, metavar="F", help="one tokenizer for both sides")
    parser.add_argument("--card", type=Path, metavar="F", help="card of the code's names, which --save-card wrote")
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
    from glassformer.extensions.importers.library.import_inputs import ImportInputs
    from glassformer.extensions.importers.library.opening import preview
    from glassformer.extensions.importers.library.saved_card import write
    from glassformer.extensions.weight_files import pickles
    from transformer.checkpoint.save import save

    answers = answers_of(options.answers)
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise CheckpointError(
            "{folder} already exists and is not an empty folder; choose a new or an empty one.", folder=str(options.out)
        )
    given = ImportInputs(options.source_pieces, options.target_pieces, options.pieces, options.pairs, options.card)
    pickles.keep(1)  # the file is opened to look, to try answers and to write
    try:
        imported = preview(options.source, answers=answers, given=given)
        print(imported.report)
        if imported.parts is None:
            raise _unwritten(imported.report)
        if options.save_card is not None:
            write(imported, options.save_card)
            print(f"card written: {options.save_card}")
        save(imported.parts, options.out)
        if said := keep_answers(options.source, answers):
            print(said)
    finally:
        pickles.keep(0)
    print(f"written: {options.out}")


def _unwritten(report: "ImportReport") -> CheckpointError:
    """Print what is asked, in the form of answers; the error says how much it is."""
    from glassformer.extensions.importers.library.answer_ranking import best_answers
    from glassformer.extensions.importers.library.kept_answers import as_said
    from glassformer.extensions.importers.library.opening import obstacle

    if report.lacks_embeddings or not report.asked:
        return obstacle(report)
    print("\nTo be answered:")
    for field in report.asked:
        choices = [as_said(one.value) + ("" if one.score is None else f" ({one.score:.3f})") for one in field.choices]
        listed = ", ".join([*choices[:_MOST], *["..."] * (len(choices) > _MOST)]) or "any value of the field"
        print(f"  --set {field.name}=...  {listed}")
    best = best_answers(report)
    if best:
        print("Best together, by the loss in brackets:")
        print("  " + " ".join(f"--set {name}={as_said(value)}" for name, value in best.items()))
    return CheckpointError(
        say_n(
            "{n} field listed above needs an answer; give it with --set. Nothing was written.",
            "{n} fields listed above need answers; give them with --set. Nothing was written.",
            len(report.asked),
        )
    )
