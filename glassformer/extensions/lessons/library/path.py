"""The short path through all lessons, loaded from `path.toml`.

Its steps are those that lessons mark as `short`, in the order of the lessons.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from glassformer.extensions.lessons.library.case import Case, QuestionNotApplicable
from glassformer.extensions.lessons.library.lesson import Text
from glassformer.extensions.lessons.library.subjects.weights_questions import keys_of, queries_of, walk_of
from transformer.model.anatomy import Kind, anatomy

FILE: Final = Path(__file__).resolve().parent / "path.toml"


@dataclass(frozen=True)
class ShortPath:
    """The path."""

    minutes: int  # how long it takes, an estimate, which a test computes
    words: tuple[tuple[Text, Text], ...]  # terms, and what is said of each on a sentence
    met: Mapping[str, Text]  # what was met in each lesson, by the lesson's name


@cache
def short_path() -> ShortPath:
    """The path as its file has it."""
    record: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return ShortPath(
        minutes=record["minutes"],
        words=tuple((Text(one["term"]), Text(one["says"])) for one in record["word"]),
        met={one["lesson"]: Text(one["says"]) for one in record["met"]},
    )


def words_on(case: Case) -> dict[str, Any]:
    """What the words name of a run: the first row of the first head of its first layer."""
    config, trace = case.checkpoint.config, case.trace
    kind: Kind = "encoder" if anatomy(config).reads else "decoder"
    found = walk_of(case, {"kind": kind, "layer": 1, "head": 1, "query": 1})
    order = [int(key) for key in np.argsort(-found.weights, kind="stable") if found.allowed[key]]
    if len(order) < 2:
        raise QuestionNotApplicable("The query of this row sees only one key; try a longer sentence.")
    best, other, pieces = order[0], order[-1], keys_of(case, kind)
    return {
        "sentence": trace.query.source,
        "n": len(trace.src_ids) or len(trace.read_ids),
        "d_model": config.d_model,
        "d_head": config.d_head,
        "root": 1 / found.how.scale,
        "n_heads": config.n_heads,
        "vocabulary": len(trace.vocabulary) or config.tgt_vocab_size,
        "read": queries_of(case, kind)[0],
        "best": pieces[best],
        "other": pieces[other],
        "score": float(found.scores[best]),
        "score_other": float(found.scores[other]),
        "weight": float(found.weights[best]),
        "weight_other": float(found.weights[other]),
    }
