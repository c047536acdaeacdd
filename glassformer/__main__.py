"""The command `glassformer`: start of the app (its options, Streamlit's, a model to open) or of a library command.

glassformer                                       the app, on http://localhost:8501
glassformer --checkpoints DIR --server.port 9000  the app; what has a dot is Streamlit's, the rest the app's
glassformer ORG/NAME                              the app, on a model of the hub, which is fetched if need be
glassformer runs/model.pt                         the app, on a model of one's own
glassformer doctor FILE                           a command; `glassformer --help` lists them
"""

import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path

import transformer
from glassformer import APP
from transformer import __version__
from transformer.__main__ import known_commands
from transformer.__main__ import main as command
from transformer.checkpoint.named import check_name, names
from transformer.errors import CheckpointError, GlassformerError
from transformer.extensions import provided

OPTIONS = """
without a command the app starts; its options:
  --checkpoints DIR           a further folder of checkpoints (several times)
  --corpora DIR               a folder of corpus runs
  --lessons DIR               a folder of lessons
  --device DEVICE             where models compute: cpu, cuda, cuda:1
  --uploads on|no-pickles|off what visitors may open
  --training on|off           whether they may train small models
  --hub fetch|cache|off       whether they see the models in the hub's cache, and may fetch more
  --open NAME                 the checkpoint that opens first
  --frame-ancestors SOURCES   whose pages may frame the app, such as "https://moodle.example.org"
  --allowed-hosts HOSTS       the names that browsers may call it by, besides localhost
  --server.port 9000 ...      any option of Streamlit that has a dot in its name"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the app or run one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["--version"], ["-V"]):
        print(f"glassformer {__version__}")
        return 0
    commands = [one.word for one in known_commands()]
    if words and _is_model(words[0], commands):
        try:
            words[:1] = _opening(words[0])
        except GlassformerError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    if words and not words[0].startswith("-") and words[0] not in commands:
        near = get_close_matches(words[0], [*commands, *names()], n=1)
        remedy = f"did you mean {near[0]}?" if near else "glassformer --help lists the commands."
        print(f"error: {words[0]}: there is no command, model or file of this name; {remedy}", file=sys.stderr)
        return 2
    if words[:1] in (["--help"], ["-h"], *([one] for one in commands)):
        return command(words, prog="glassformer", epilog=OPTIONS)
    theirs, ours = _parted(words)
    for word in ours:
        if word.startswith("-") and word.partition("=")[0] not in re.findall(r"--[\w-]+(?= )", OPTIONS):
            print(f"error: {word} is no option; glassformer --help lists them.", file=sys.stderr)
            return 2
    programs = entry_points(group="console_scripts", name="streamlit")
    if not programs:
        print("error: streamlit is missing; pip install glassformer brings it.", file=sys.stderr)
        return 2
    sys.argv = ["streamlit", "run", str(APP / "app.py"), *theirs, "--", *ours]
    (program,) = programs
    return int(program.load()(standalone_mode=False) or 0)


def _is_model(word: str, commands: Sequence[str]) -> bool:
    """Whether a word is that of a model and not of a command: a path, or a name of the hub."""
    if not word or word.startswith("-") or word in commands:
        return False
    return os.sep in word or "/" in word or Path(word).suffix != "" or word in names() or Path(word).exists()


def _opening(word: str) -> list[str]:
    """The app's options that open a model; one of the hub is in the cache then."""
    if word in names():
        return ["--open", word]
    place = Path(word).expanduser()
    if place.exists():
        return ["--checkpoints", str(place.absolute().parent), "--open", place.absolute().name]
    check_name(place)
    typed_as_path = place.as_posix() != word  # such as ./a/b
    if typed_as_path or not any(one.reads(place, inside=None) for one in provided("formats")):  # nor has it the hub
        raise CheckpointError("{path}: there is no such file or folder.", path=word)
    transformer.pull(word, again=False)
    return ["--open", word]


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of Streamlit, and those of the app; a word after an option goes with it."""
    ours: list[str] = []
    theirs: list[str] = []
    place = ours
    for word in words:
        if word.startswith("-"):
            place = theirs if "." in word.partition("=")[0] else ours
        if word != "--":
            place.append(word)
    return theirs, ours


if __name__ == "__main__":
    sys.exit(main())
