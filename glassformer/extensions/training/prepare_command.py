"""`python -m transformer prepare` and `task`: the files that `train` reads, from public text or made up."""

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.checkpoint.card import TEXTS


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.description = (
        "FILE is a text of lines `source TAB target` or `source TAB target TAB attribution` (what "
        "manythings.org/anki gives, also as the zip); two files are taken as line-aligned."
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="one file of pairs, or two aligned files")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write")
    parser.add_argument("--force", action="store_true", help="replace what an earlier call wrote there")
    parser.add_argument("--swap", action="store_true", help="the second column (or file) is the source")
    parser.add_argument(
        "--simplified", choices=("source", "target", "both"), help="make Traditional Chinese simplified"
    )
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--max-chars", type=int, default=300, help="most characters per side")
    kept.add_argument("--max-words", type=int, default=0, help="most words per side, if it has spaces; 0: no limit")
    kept.add_argument("--max-ratio", type=float, default=3.0, help="largest ratio of a length to the expected")
    kept.add_argument("--limit", type=int, default=0, help="keep this many pairs, drawn at random; 0: all")
    held_out = parser.add_argument_group("held-out pairs")
    held_out.add_argument("--dev", type=int, default=1_000, help="pairs to choose settings on")
    held_out.add_argument("--test", type=int, default=2_000, help="pairs to score once at the end")
    held_out.add_argument("--seed", type=int, default=1, help="decides which pairs are drawn")
    card = parser.add_argument_group("card.json, for train --card")
    card.add_argument("--title", default="", help="such as 'German to English'")
    card.add_argument("--description", default="")
    card.add_argument("--source-language", default="", help="such as German")
    card.add_argument("--target-language", default="")
    card.add_argument("--source-code", default="", help="such as de")
    card.add_argument("--target-code", default="")
    card.add_argument("--data", default="", help="source of the text; known for Tatoeba")
    card.add_argument("--licence", default="", help="licence of the text; known for Tatoeba")


def _run(options: argparse.Namespace) -> None:
    from glassformer.extensions.training.library.cleaning import CleaningRules
    from glassformer.extensions.training.library.preparation import Preparation, prepare

    def given(*names: str) -> dict[str, Any]:
        return {name: getattr(options, name) for name in names}

    rules = CleaningRules(
        simplify_source=options.simplified in ("source", "both"),
        simplify_target=options.simplified in ("target", "both"),
        **given("swap", "max_chars", "max_words", "max_ratio", "limit", "seed"),
    )
    print(_told(prepare(Preparation(rules=rules, card=given(*TEXTS), **given("files", "out", "dev", "test", "force")))))
    print(_next_command(options))


def _told(report: Mapping[str, Any]) -> str:
    """The report for the terminal: examples as Python literals, which escapes control characters."""
    names = " and ".join(file["file"] for file in report["files"])
    lines = [f"{report['read']:,} lines of {names}"]
    lines += [f"  {count:>9,} sides {name}" for name, count in report["changed"].items()]
    lines.append(f"{report['read'] - report['kept']:,} lines dropped")
    for reason, found in report["dropped"].items():
        lines.append(f"  {found['lines']:>9,} {reason}")
        lines += [f"            line {example['line']}: {_printable(example['text'])}" for example in found["examples"]]
    groups = report["groups"]
    lines += [
        f"{report['kept']:,} pairs kept, {report['with_attribution']:,} with attribution",
        f"  {groups['groups']:,} groups without a common sentence, the largest of {groups['pairs_of_the_largest']:,} "
        f"pairs; {groups['pairs_that_could_be_drawn']:,} pairs in groups of at most "
        f"{groups['most_pairs_of_a_drawn_one']}, from which dev and test are drawn",
        *(f"  {count:>9,} {name}" for name, count in report["splits"].items()),
    ]
    return "\n".join(lines)


def _printable(text: str) -> str:
    """Text on one line, with control characters and those outside the terminal's encoding escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    return repr(text).encode(encoding, "backslashreplace").decode(encoding)


def _next_command(options: argparse.Namespace) -> str:
    """The next command to type, if there is something to measure a training on."""
    if not options.dev:
        return "train needs a dev file: prepare with --dev, or bring one"
    files = " ".join(
        f"--{option} {shlex.quote(str(options.out / name))}"
        for option, name in (("train", "train.tsv"), ("dev", "dev.tsv"), ("card", "card.json"))
    )
    # What was done to the sources here has to be done to every source later.
    steps = " --normalisation nfc simplified-chinese" if options.simplified in ("source", "both") else ""
    # A folder of checkpoints only, for `--checkpoints` of the app.
    out = shlex.quote(f"runs/own/{options.out.resolve().name}")
    return f"next: python -m transformer train {files}{steps} --out {out}"


def add_task(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run_task)
    parser.add_argument("name", choices=("reverse", "sort", "copy", "addition", "palindrome", "noise"))
    parser.add_argument("--out", type=Path, required=True, help="folder for train.tsv, dev.tsv and test.tsv")
    parser.add_argument("--longest", type=int, metavar="N", help="most letters, or digits of a summand (usually 12, 3)")
    parser.add_argument("--train", type=int, metavar="N", help="lines to learn from (default: the task's own number)")


def _run_task(options: argparse.Namespace) -> None:
    from glassformer.extensions.training.library.preparation import write_task

    write_task(options.name, options.out, train=options.train, longest=options.longest)
