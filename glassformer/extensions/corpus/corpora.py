"""Corpus runs available to the app: search folders, listing, match by checkpoint.

    streamlit run app.py -- --corpora DIR        or        GLASSFORMER_CORPORA=DIR

DIR is the `--out` of `python -m transformer corpus ...`; both settings may name several folders.
"""

import os
import time
from pathlib import Path
from typing import Final

from glassformer.extensions.corpus.library.folder import Run, runs
from glassformer.server.server_options import values
from glassformer.shared.i18n import st
from transformer.i18n import Sentence

ENVIRONMENT: Final = "GLASSFORMER_CORPORA"
OPTION: Final = "--corpora"
LOOK_AGAIN_SECONDS: Final = 5

Listed = tuple[tuple[Run, ...], tuple[Sentence, ...]]


def folders() -> tuple[Path, ...]:
    """The folders that hold corpus runs."""
    from_environment = [part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    named = (*from_environment, *values(OPTION))
    return tuple(dict.fromkeys(Path(part).expanduser() for part in named))


def listed() -> Listed:
    """The runs of which at least one shard is done, and a sentence on each folder that cannot be read."""
    where = folders()
    return _listed(where, int(time.monotonic() / LOOK_AGAIN_SECONDS)) if where else ((), ())


@st.cache_resource(max_entries=4, show_spinner=False)
def _listed(where: tuple[Path, ...], when: int) -> Listed:
    found, problems = runs(where)
    return tuple(run for run in found if run.done), tuple(problems)


def of_checkpoint(content_hash: str) -> Run | None:
    """The run of a checkpoint with the most lines, if there is one."""
    found = [run for run in listed()[0] if run.about.content_hash == content_hash]
    return max(found, key=lambda run: run.lines_done, default=None)
