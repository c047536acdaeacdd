"""What a reader typed for a piece: which one it means, what to offer instead, how it stands as a guess.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass

import numpy as np

from glassformer.runs.step_rows import Looking
from transformer.i18n import joined, say
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer

N_OFFERS = 5


def find_piece(text: str, tokenizer: AnyTokenizer, log_probs: np.ndarray) -> int | None:
    """The id of the piece that a person means by a text: as typed, or as the beginning of a word.

    Where both are pieces it is the likelier one at this step, by `log_probs` [vocab]: after "l'" it is "homme",
    elsewhere "▁homme".
    """
    text = _typed(text)
    found = [tokenizer.id_of(piece) for piece in (SPACE_MARK + text, text) if text]
    return max((i for i in found if i is not None), key=lambda i: float(log_probs[i]), default=None)


def first_piece(text: str, tokenizer: AnyTokenizer) -> int | None:
    """The id of the first piece of a text as its vocabulary splits it, beyond a bare ▁; None if that is unknown."""
    ids = tokenizer.encode(_typed(text)).ids
    first = next((i for i in ids if tokenizer.piece(i) != SPACE_MARK), None)
    return None if first is None or tokenizer.is_special(first) else first


def pieces_like(text: str, tokenizer: AnyTokenizer, log_probs: np.ndarray) -> list[int]:
    """What to offer for a text that is not one piece: ids of the one it begins with, and of likely longer ones.

    There are at most `N_OFFERS`; `log_probs` [vocab] are of the step.
    """
    typed = _typed(text).strip(SPACE_MARK).casefold()
    first = first_piece(text, tokenizer)
    longer = [
        i
        for i, piece in enumerate(tokenizer.pieces)
        if typed and piece.strip(SPACE_MARK).casefold().startswith(typed) and not tokenizer.is_special(i)
    ]
    likeliest = sorted(longer, key=lambda i: -float(log_probs[i]))
    return list(dict.fromkeys([*([] if first is None else [first]), *likeliest]))[:N_OFFERS]


def _typed(text: str) -> str:
    """A text as typed, without what no vocabulary can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()


@dataclass(frozen=True)
class Verdict:
    """What is said of a guess."""

    right: bool | None  # whether the output has that piece; None if the guess could not be judged
    text: str  # in one or more sentences


def judge(guess: str, looking: Looking, tokenizer: AnyTokenizer) -> Verdict:
    """Judge a guess of the current piece; one of several pieces by its first."""
    trace, step = looking.trace, looking.view.step
    whole = find_piece(guess, tokenizer, trace.log_probs[step])
    i = first_piece(guess, tokenizer) if whole is None else whole
    if i is None:
        beginning = say("“{text}” does not begin with any piece of this model's vocabulary.", text=guess.strip()[:40])
        again = say("Guess again, or leave the field empty to see the model's choice.")
        return Verdict(None, joined(" ", [beginning, again]))
    piece, right = trace.vocabulary[i], i == trace.tgt_ids[step]
    probability = float(np.exp(trace.log_probs[step, i]))
    found = say(
        "The model gave “{piece}” a probability of {probability} (rank {rank:,}).",
        piece=piece,
        probability=f"{probability:.3f}" if probability >= 0.001 else "<0.001",
        rank=trace.rank_of(i, step=step),
    )
    said = [say("Right.") if right else say("The output has a different piece at this step."), found]
    if whole is None:
        said.insert(
            0,
            say(
                "“{text}” splits into several pieces, so only the first one, “{piece}”, counts.",
                text=guess.strip()[:40],
                piece=piece,
            ),
        )
    return Verdict(right, joined(" ", said))
