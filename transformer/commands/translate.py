"""`python -m transformer translate`: lines translated greedily or by beam search; refusal of sentences in a file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer.checkpoint.named import named
from transformer.commands import add_device
from transformer.errors import DataError, GlassformerError


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=named, help="a checkpoint folder, or a name such as zh-en")
    parser.add_argument("lines", nargs="*", help="sentences (default: the lines of standard input)")
    parser.add_argument("--beam", type=int, default=0, help="number of beams (default: greedy)")
    parser.add_argument("--unseen-in", type=Path, help="refuse sentences that are in this file of pairs")
    add_device(parser)


def _run(options: argparse.Namespace) -> None:
    from transformer import Beam, Greedy, load

    typed = getattr(sys.stdin, "buffer", sys.stdin)  # bytes: a line that is not UTF-8 costs no other
    given = list(enumerate(map(_text, options.lines or typed), start=1))
    lines = [(number, line) for number, line in given if line != ""]
    if options.unseen_in:
        _refuse_seen([line for _, line in lines if line is not None], options.unseen_in)
    checkpoint = load(options.checkpoint, device=options.device)
    decoding = Beam(size=options.beam) if options.beam else Greedy()
    failed = 0
    for number, line in lines:
        try:
            if line is None:
                raise DataError("the line is not UTF-8; save the text as UTF-8.")
            output = checkpoint.run(checkpoint.query(line, decoding=decoding)).output_text
            print(line, output, sep="\t", flush=True)
        except GlassformerError as error:  # one line that cannot be read does not cost the others
            print(f"error: line {number}: {error}", file=sys.stderr)
            failed += 1
    if failed:
        raise DataError("{failed} of {total} lines could not be translated.", failed=failed, total=len(lines))


def _text(line: bytes | str) -> str | None:
    """A line without spaces around it; None if it is not UTF-8."""
    try:
        # An argument that is not UTF-8 reaches Python as halves of surrogate pairs.
        return (line if isinstance(line, bytes) else line.encode()).decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeError:
        return None


def _refuse_seen(lines: Sequence[str], pairs: Path) -> None:
    """Punctuation, spaces and case do not make a sentence another one, as in `prepare`."""
    from transformer.runs.sentence_files import read_pairs
    from transformer.text.line_files import sentence_key

    seen = {sentence_key(source) for source, _ in read_pairs(pairs)}
    found = [line for line in lines if sentence_key(line) in seen]
    if found:
        raise DataError(
            "{file} already contains {count} of the {total} sentences: {lines}",
            count=len(found),
            total=len(lines),
            file=pairs.name,
            lines=" ".join(found[:5]),
        )
