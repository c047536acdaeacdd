"""What hiding each piece of a text in turn costs a model, as a bar a piece."""

from __future__ import annotations

from collections.abc import Sequence

from charts.piece_losses import piece_losses_spec
from charts.theme import Spec
from words import say

HOW_TO_READ = say(
    "Each bar is one piece, hidden while all others are seen: its loss −ln p, 0 where the model is certain of it. A "
    "pale bar is a piece that the model would have written itself. Click a bar to hide that piece."
)
PIECE_AXIS = say("Hidden piece")


def hidden_pieces_spec(
    pieces: Sequence[str],
    losses: Sequence[float],
    *,
    places: Sequence[int],
    ranks: Sequence[int],
    best: Sequence[str],
    best_probabilities: Sequence[float],
    chosen: int | None,
    title: str,
) -> Spec:
    """Draw the loss of each piece of a text, hidden alone; the arguments are those of `piece_losses_spec`."""
    return piece_losses_spec(
        pieces,
        losses,
        places=places,
        ranks=ranks,
        best=best,
        best_probabilities=best_probabilities,
        chosen=chosen,
        title=title,
        piece_axis=PIECE_AXIS,
    )
