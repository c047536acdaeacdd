"""The command line: `python -m transformer COMMAND`; the module of a command is imported when it is called."""

import argparse
import logging
import sys
from collections.abc import Sequence

from transformer.errors import GlassformerError
from transformer.extensions import Command, extensions, imported

EXTRAS = {
    "corpus": ("duckdb",),
    "fast": ("ctranslate2",),
    "hf": ("huggingface_hub", "tokenizers"),
    "hosting": ("prometheus_client", "redis"),
    "pictures": ("kaleido",),
    "ray": ("ray",),
    "train": ("sacrebleu", "tqdm"),
}
"""The modules that each extra brings."""
INTERRUPTED = 130  # what a shell expects of a command that Ctrl-C ended
# Those of the library itself; extensions have more.
COMMANDS = (Command(40, "translate", "translate lines of text", "transformer.commands.translate:add"),)


def known_commands() -> list[Command]:
    """All commands, in the order of the list that `--help` shows."""
    return sorted(COMMANDS + tuple(more for extension in extensions() for more in extension.commands))


def main(arguments: Sequence[str] | None = None, prog: str = "python -m transformer", epilog: str = "") -> int:
    """Run one command; returns the exit status, which is 0 unless the command says another."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Train, import, examine, score, try and draw checkpoints.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = sys.argv[1:] if arguments is None else arguments
    for one in known_commands():
        command = commands.add_parser(one.word, help=one.about, description=one.about)
        if one.word in asked[:1]:
            imported(one.add)(command)
    options = parser.parse_args(asked)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        status: int | None = options.run(options)
    except ModuleNotFoundError as error:
        extra = next(
            (extra for extra, brings in EXTRAS.items() if (error.name or "").partition(".")[0] in brings), None
        )
        named = f"'glassformer[{extra}]'" if extra else "glassformer"
        print(f"{_fresh_line()}error: {error.name} is missing; pip install {named} brings it.", file=sys.stderr)
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
