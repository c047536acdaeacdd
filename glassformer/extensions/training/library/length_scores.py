"""Scores by source length: loss and exact greedy outputs, also of lengths beyond those of the training.

A length is the number of a source's own tokens. What a training has seen is in its card (`training.longest`).
"""

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from pathlib import Path

from glassformer.extensions.training.library.data import encode_pairs, n_source
from glassformer.extensions.training.library.scoring import held_out_loss, translate
from transformer.checkpoint.load import Checkpoint
from transformer.errors import DataError
from transformer.runs.sentence_files import Pair


@dataclass(frozen=True)
class LengthScore:
    """How a model does on the pairs whose sources have one length."""

    length: int  # tokens of the source
    pairs: int
    loss: float  # nats a target token, each read before the next is predicted
    exact: float  # share of greedy outputs that equal their reference
    seen: int  # 1 if the training had sources at least as long, 0 if not, -1 if the card does not say


def scores_by_length(checkpoint: Checkpoint, pairs: Sequence[Pair]) -> list[LengthScore]:
    """The scores at each length, the shortest first; pairs that the model cannot read are left out.

    A `DataError` if the model writes nothing, or no pair is left.
    """
    config, model = checkpoint.config, checkpoint.model
    if not model.anatomy.writes:
        raise DataError(
            "{model}: an encoder-only model writes nothing; give a model with a decoder.", model=checkpoint.name
        )
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    each = ((pair, example) for pair in pairs for example in encode_pairs([pair], source, target, config))
    ordered = sorted(each, key=lambda one: n_source(one[1], config))
    if not ordered:
        raise DataError("{model}: cannot read any of the pairs; give shorter ones.", model=checkpoint.name)
    longest = checkpoint.card.training.get("longest")
    found = []
    for length, rows in groupby(ordered, lambda one: n_source(one[1], config)):
        group, examples = zip(*rows, strict=True)
        outputs = translate(model, target, examples)
        exact = sum(output == wanted for output, (_, wanted) in zip(outputs, group, strict=True)) / len(group)
        seen = int(length <= longest) if isinstance(longest, int) else -1
        found.append(LengthScore(length, len(group), held_out_loss(model, examples), exact, seen))
    return found


COLUMNS = tuple(field.name for field in fields(LengthScore))


def write_lengths(path: Path, found: Sequence[LengthScore]) -> None:
    """Write the scores as CSV."""
    with path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *map(astuple, found)])


def read_lengths(path: Path) -> list[LengthScore]:
    """The scores that `write_lengths` has written; empty if there is no such file, or it is not whole."""
    try:
        rows = [[float(cell) for cell in row] for row in list(csv.reader(path.read_text("ascii").splitlines()))[1:]]
        return [LengthScore(int(row[0]), int(row[1]), row[2], row[3], int(row[4])) for row in rows]
    except (OSError, ValueError, IndexError):
        return []
