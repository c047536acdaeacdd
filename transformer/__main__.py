"""The command line: `python -m transformer COMMAND`; each command is a module of `transformer.commands`."""

import argparse
import logging
import sys
from collections.abc import Sequence

from transformer.commands import (
    corpus,
    doctor,
    evaluate,
    import_model,
    picture,
    prepare,
    sentences,
    task,
    train,
    translate,
)
from transformer.errors import GlassformerError

INTERRUPTED = 130  # what a shell expects of a command that Ctrl-C ended
COMMANDS = {
    "prepare": prepare,
    "train": train,
    "task": task,
    "translate": translate,
    "sentences": sentences,
    "picture": picture,
    "evaluate": evaluate,
    "corpus": corpus,
    "import": import_model,
    "doctor": doctor,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status, which is 0 unless the command says another."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer", description="Train, import, examine, score, try and draw checkpoints."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add(commands.add_parser(name, help=command.HELP))
    options = parser.parse_args(arguments)
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
