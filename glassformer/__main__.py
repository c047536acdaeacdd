"""The command `glassformer`: the app without a word, else a command of the library.

glassformer                                       the app, on http://localhost:8501
glassformer --checkpoints DIR --server.port 9000  the app; what has a dot is Streamlit's, the rest the app's
glassformer doctor FILE                           a command; `glassformer --help` lists them
"""

import re
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

from glassformer import APP
from transformer import __version__
from transformer.__main__ import main as command

OPTIONS = """
without a command the app starts; its options:
  --checkpoints DIR           a further folder of checkpoints (several times)
  --corpora DIR               a folder of corpus runs
  --lessons DIR               a folder of lessons
  --device DEVICE             where models compute: cpu, cuda, cuda:1
  --uploads on|no-pickles|off what visitors may open
  --training on|off           whether they may train small models
  --server.port 9000 ...      any option of Streamlit that has a dot in its name"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the app or run one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["--version"], ["-V"]):
        print(f"glassformer {__version__}")
        return 0
    if words[:1] in (["--help"], ["-h"]) or (words and not words[0].startswith("-")):
        return command(words, prog="glassformer", epilog=OPTIONS)
    theirs, ours = _parted(words)
    for word in ours:
        if word.startswith("-") and word.partition("=")[0] not in re.findall(r"--\w+(?= )", OPTIONS):
            print(f"error: {word} is no option; glassformer --help lists them.", file=sys.stderr)
            return 2
    programs = entry_points(group="console_scripts", name="streamlit")
    if not programs:
        print("error: streamlit is missing; pip install glassformer brings it.", file=sys.stderr)
        return 2
    sys.argv = ["streamlit", "run", str(APP / "app.py"), *theirs, "--", *ours]
    (program,) = programs
    return int(program.load()(standalone_mode=False) or 0)


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
