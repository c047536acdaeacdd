"""Charts that a page and a handout draw of the same arrays."""

from __future__ import annotations

import charts
from charts.theme import Spec
from transformer.runs.teacher_forcing import Score
from words import say


def piece_losses(score: Score, chosen: int | None) -> Spec:
    """The loss of each piece of a reference.

    Args:
        score: What the model makes of it.
        chosen: The piece that is looked at, if one is.
    """
    return charts.piece_losses_spec(
        score.pieces,
        score.losses.tolist(),
        places=range(len(score)),
        ranks=score.ranks.tolist(),
        best=[score.vocabulary[i] for i in score.best_ids[:, 0]],
        best_probabilities=score.best_probabilities[:, 0].tolist(),
        chosen=chosen,
        guessing=score.guessing,
        title=say("Loss by position"),
    )
