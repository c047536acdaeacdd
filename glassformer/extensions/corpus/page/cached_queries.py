"""Questions to a corpus run, each asked once; while files are read, other visitors' pages are drawn."""

from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar, cast

import pyarrow as pa

from glassformer.extensions.corpus.library import folder, paired, queries, scores
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.joint_space import JointSpace, join, read_tokens
from glassformer.extensions.corpus.library.paired import PairedDifference
from glassformer.extensions.corpus.library.scores import CorpusScores, PairedScore
from glassformer.server.render_lock import RENDER_LOCK
from transformer.errors import GlassformerError
from transformer.model.anatomy import Kind

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


def _once(most: int) -> Callable[[Callable[_Asked, _Answer]], Callable[_Asked, _Answer]]:
    """A decorator: keep so many answers, and let others draw meanwhile; what is asked can be hashed.

    A `DataError` where a file is gone since it was looked into, or holds what it cannot.
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
differences = _once(32)(paired.by_head)
most_different = _once(64)(paired.most_different)


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
    """As `scores.paired`, and `paired.of_log_prob`."""
    for run in (first, second):
        folder.check(run, "sentences")
    return scores.paired(first.folder, second.folder), paired.of_log_prob(first, second)


@_once(4)
def joined_heads(run: Run, kind: Kind, layer: int, n_heads: int) -> Mapping[int, JointSpace]:
    """The queries and keys of the heads of a layer (from 1), by the heads' places from 0; all of the same tokens."""
    of = read_tokens(folder.check(run, "vectors"), kind, layer, range(1, n_heads + 1))
    return {tokens.head - 1: join(tokens, causal=kind == "decoder") for tokens in of}
