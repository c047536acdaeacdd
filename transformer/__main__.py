"""The command line: `python -m transformer COMMAND`; each command is a module of `transformer.commands`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from transformer.errors import GlassformerError

INTERRUPTED = 130  # what a shell expects of a command that Ctrl-C ended
# Word -> what it is for. The module of `transformer.commands` that does it is imported when it is called.
COMMANDS = {
    "prepare": "clean and split public text into the files that train reads",
    "train": "learn a vocabulary and a model from files of sentence pairs",
    "task": "write the files of a made-up task",
    "translate": "translate lines of text",
    "sentences": "run a file of sentences: output, log-probability, entropy, repetition, chrF of each",
    "picture": "draw a picture of a run: SVG or PNG for print, or HTML that steps",
    "evaluate": "score a checkpoint: BLEU and chrF on sentence pairs, alignment error rate on gold links",
    "corpus": "measure a model and its heads over a file of sentences: tables for the page Over a corpus",
    "import": "make a checkpoint folder of a model that another program saved",
    "doctor": "examine a checkpoint: masks, cache, settings, heads, tokenizers; says what is wrong, and why",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, which is 0 unless the command says another."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer", description="Train, import, examine, score, try and draw checkpoints."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = sys.argv[1:] if arguments is None else arguments
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        if name in asked[:1]:
            module = "import_model" if name == "import" else name
            import_module(f"transformer.commands.{module}").add(command)
    options = parser.parse_args(asked)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        status: int | None = options.run(options)
    except ModuleNotFoundError as error:
        print(
            f"{_fresh_line()}error: {error.name} is missing; pip install 'glassformer[train]' brings it.",
            file=sys.stderr,
        )
        return 2
    except GlassformerError as error:
        print(f"{_fresh_line()}error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # such as a full disk; what a command foresees it says itself
        where = f"{error.filename}: " if error.filename else ""
        print(f"{_fresh_line()}error: {where}{error.strerror or error}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(f"\ninterrupted. {error}".rstrip(), file=sys.stderr)
        return INTERRUPTED
    return status or 0


def _fresh_line() -> str:
    """What clears a line of progress that a command may have left on a terminal."""
    return "\r\x1b[K" if sys.stderr.isatty() else ""


if __name__ == "__main__":
    sys.exit(main())
