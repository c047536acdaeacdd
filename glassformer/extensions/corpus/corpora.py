"""Corpus runs of the app: listed from its folders (--corpora); cached searches, scores and joint spaces.

    streamlit run app.py -- --corpora DIR        or        GLASSFORMER_CORPORA=DIR

DIR is the `--out` of `python -m transformer corpus ...`; both settings may name several folders. Other sessions render
while DuckDB works.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

import pyarrow as pa

from glassformer.extensions.corpus.library import folder, queries, scores
from glassformer.extensions.corpus.library.folder import Run, runs
from glassformer.extensions.corpus.library.joint_space import JointSpace, join, read_tokens
from glassformer.extensions.corpus.library.scores import CorpusScores, PairedDifference, PairedScore
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.server.server_options import values
from glassformer.shared.i18n import st
from transformer.errors import GlassformerError
from transformer.i18n import Sentence
from transformer.model.anatomy import Kind

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


# ------------------------------------------------------------------------------------------------ what is asked

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def _once(most: int) -> Callable[[Callable[_Asked, _Answer]], Callable[_Asked, _Answer]]:
    """A decorator: cache so many answers, without blocking other sessions; arguments must be hashable.

    A `DataError` where a file has gone or has become unusable since `check`.
    """

    def decorated(ask: Callable[_Asked, _Answer]) -> Callable[_Asked, _Answer]:
        @wraps(ask)
        def asked(*args: _Asked.args, **options: _Asked.kwargs) -> _Answer:
            try:
                with RENDER_LOCK.aside():
                    return ask(*args, **options)
            except GlassformerError:
                raise
            except (OSError, ValueError, pa.ArrowException) as error:
                runs = [one for one in args if isinstance(one, Run)]
                raise folder.damaged(*runs, kind=type(error).__name__) from None

        return cast("Callable[_Asked, _Answer]", lru_cache(maxsize=most)(asked))

    return decorated


search = _once(256)(queries.search)
extremes = _once(64)(queries.extremes)
line = _once(64)(queries.line)
differences = _once(32)(scores.by_head)
most_different = _once(64)(scores.most_different)


@_once(16)
def scores_of(run: Run) -> CorpusScores:
    """As `scores.scores`."""
    for table in ("sentences", "heads"):
        folder.check(run, table)
    return scores.scores(run.folder)


@_once(16)
def score_differences(
    first: Run, second: Run
) -> tuple[Mapping[str, PairedScore], tuple[PairedDifference | None, bool]]:
    """As `scores.paired`, and `scores.of_log_prob`."""
    for run in (first, second):
        folder.check(run, "sentences")
    return scores.paired(first.folder, second.folder), scores.of_log_prob(first, second)


@_once(4)
def joined_heads(run: Run, kind: Kind, layer: int, n_heads: int) -> Mapping[int, JointSpace]:
    """The queries and keys of the heads of a layer (from 1), by the heads' places from 0; all of the same tokens."""
    of = read_tokens(folder.check(run, "vectors"), kind, layer, range(1, n_heads + 1))
    return {tokens.head - 1: join(tokens, causal=kind == "decoder") for tokens in of}
