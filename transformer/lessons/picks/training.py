"""What a lesson about training lets the model read: an output that it would not have written quite so.

A reference is the card's translation of an example if it has one, else one of the last results of a beam search: near
enough to be a right output, and different.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from transformer.checkpoint.curve import Curve, load_curve
from transformer.errors import CheckpointError
from transformer.lessons.case import Case, NotHere
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam
from transformer.runs.teacher_forcing import Score, judge

BEAMS: Final = 5
LENGTH_PENALTY: Final = 0.6


def reference(case: Case) -> dict[str, Any]:
    """An output to be read instead of the model's own, and the first piece that it would not have written there."""
    parts = anatomy(case.checkpoint.config)
    if not (parts.reads and parts.writes):
        raise NotHere("This step needs a model that reads one text and writes another.")
    if not case.trace.n_steps:
        raise NotHere("The model writes nothing for this sentence; try another one.")
    for text in _texts(case):
        score = judge(case.checkpoint, case.trace.query, text)
        missed = first_miss(score)
        if missed is not None and missed < len(score) - 2:
            return {
                "reference": text,
                "at": missed + 1,
                "step": min(missed + 1, case.trace.n_steps),
                "right": score.pieces[missed],
                "own": score.own_pieces[missed],
            }
    raise NotHere("No output was found that is near the model's own and differs early enough; try a longer sentence.")


def _texts(case: Case) -> Iterator[str]:
    """Outputs that may be right, the likeliest to be so first."""
    card, source = case.checkpoint.card, case.trace.query.source
    if source in card.glosses and card.target_code.split("-")[0] == "en":
        yield card.glosses[source]
    beams = case.another(decoding=Beam(size=BEAMS, length_penalty=LENGTH_PENALTY))
    for result in reversed(beams.hypotheses):
        if result.text.strip() not in ("", case.trace.output_text.strip()):
            yield result.text.strip()


def first_miss(score: Score) -> int | None:
    """The first place, from 0, at which a model would have written another piece; None if there is none."""
    return next((place for place, hit in enumerate(score.hits) if not hit), None)


def last_loss(case: Case) -> dict[str, Any]:
    """The loss that the training ended with."""
    losses = curve_of(case).columns.get("loss")
    if losses is None:
        raise NotHere("The training of this checkpoint recorded no loss.")
    return {"loss": losses[-1]}


def recipe(case: Case) -> dict[str, Any]:
    """What the card says of the training."""
    smoothing, epochs, config = smoothing_of(case), len(curve_of(case).epochs), case.checkpoint.config
    return {"smoothing": smoothing, "epochs": epochs, "dropout": config.dropout, "n": config.tgt_vocab_size}


def smoothing_of(case: Case) -> float:
    """How far the labels were smoothed."""
    said: Any = case.checkpoint.card.training.get("smoothing")
    if not isinstance(said, float) or not 0 < said < 1:
        raise NotHere("The card of this checkpoint does not say that it was trained with label smoothing.")
    return said


def curve_of(case: Case) -> Curve:
    """How the training of the checkpoint went.

    Args:
        case: The run.

    Raises:
        NotHere: Its folder does not say.
    """
    checkpoint = case.checkpoint
    try:
        curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    except CheckpointError as error:
        raise NotHere(
            "No learning curve of this checkpoint can be read: {problem}", problem=error.sentence
        ) from error
    if curve is None:
        raise NotHere("The folder of this checkpoint has no training.csv; choose another checkpoint.")
    return curve


PICKS: Final = (reference, last_loss, recipe)
