"""The cards of the softmax: scores that are not scaled, and the softmax of the softmax."""

from __future__ import annotations

from typing import Final

from transformer.checkpoint.load import Checkpoint
from ui.wrong import mistake_changes
from ui.wrong.card import Card, Code, Measure
from ui.wrong.mistake_figures import largest_weight, one_row, weights_of
from words import Sentence, say

LARGEST: Final = Measure(
    say("Largest weight of a row, on average over all rows of all heads"),
    largest_weight,
    form=".1%",
)


def _is_unscaled(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.score_scale == 1.0:
        return say("This model does not divide its scores: it was trained so, and nothing can be left out.")
    return None


SCALE: Final = Card(
    mistake="scale",
    title=say("Scores without their scale"),
    about=say(
        "q·k is a sum of d_head products, so it grows with √d_head. Dividing by √d_head keeps it in the range in "
        "which a softmax has several weights that count. Without the division all differences between scores are "
        "√d_head times as large."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("scores = q @ k.transpose(-2, -1)"),
        # For translators: code; only what follows a # is translated.
        right=say("scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)"),
    ),
    measure=LARGEST,
    sites=weights_of,
    texts={
        "same": say(
            "In the first layer each row keeps the order of its keys, and only how sharply they are told apart "
            "changes. Here what was ahead was far enough ahead. Trained without the division, it is the gradient "
            "that suffers: a softmax with one weight near 1 passes hardly any on."
        ),
        "changed": say(
            "In the first layer each row keeps the order of its keys, but what several keys gave together one may "
            "now give alone. The layers above read other vectors than the ones that they were trained with."
        ),
    },
    charts=one_row,
    change=mistake_changes.unscaled,
    unfit=_is_unscaled,
    source=say("Vaswani et al. (2017), section 3.2.1 and its footnote 4."),
)
TWICE: Final = Card(
    mistake="twice",
    title=say("The softmax twice"),
    about=say(
        "The weights go through the softmax again: in one function that gives them and once more in the one that "
        "uses them. Weights lie between 0 and 1, so the second softmax sees differences of at most 1: no key can "
        "get more than e times the weight of another."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("weights = scores.softmax(dim=-1)\nout = weights.softmax(dim=-1) @ v"),
        # For translators: code; only what follows a # is translated.
        right=say("weights = scores.softmax(dim=-1)\nout = weights @ v"),
    ),
    measure=LARGEST,
    sites=weights_of,
    texts={
        "same": say(
            "No weight is now more than e = 2.72 times another one of its row, and here the pieces that won stay "
            "ahead. The largest weight says how much of the choice among keys is left."
        ),
        "changed": say(
            "No weight is now more than e = 2.72 times another one of its row: 0.83, 0.11, 0.04 and 0.02 become "
            "0.42, 0.20, 0.19 and 0.19. A head that picked one key now gives nearly the mean of all, and the layers "
            "above were not trained for that."
        ),
    },
    charts=one_row,
    change=mistake_changes.softmax_twice,
    source=say("Vaswani et al. (2017), equation 1: one softmax."),
)
