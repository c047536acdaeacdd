"""Questions about the recipe of a training: the rate, label smoothing, dropout, and what its curves say.

Source: Vaswani et al. (2017), sections 5.3 and 5.4; Szegedy et al. (2016), section 7, for label smoothing.
"""

import math
from typing import Final

import numpy as np

from glassformer.extensions.lessons.library.case import Answer, Case, NotHere, Option, only_rounding, worded
from glassformer.extensions.lessons.library.subjects.training_questions import curve_of, smoothing_of
from transformer.model.anatomy import anatomy

NEARLY_NOTHING: Final = 0.1  # of the highest rate of an epoch, what the last may have to count as having fallen


def rate_at_the_end(case: Case) -> Answer:
    """What the learning rate does once it has been warmed up."""
    rates = _column(case, "learning_rate")
    first, last = float(rates[0]), float(rates[-1])
    if not 0 < last < NEARLY_NOTHING * float(rates.max()):
        raise NotHere("None of the choices describes how the learning rate changed when this checkpoint was trained.")
    middle = float(rates[len(rates) // 2])
    values = {"first": f"{first:.6f}", "middle": f"{middle:.6f}", "last": f"{last:.6f}", "epochs": len(rates)}
    return Answer(right="falls", options=worded("stays", "falls", "rises", "waves"), values=values)


def least_smoothed_loss(case: Case) -> Answer:
    """The least loss that a model can have under label smoothing: the entropy of what is wanted."""
    smoothing, n = smoothing_of(case), case.checkpoint.config.tgt_vocab_size
    right, other = 1 - smoothing + smoothing / n, smoothing / n
    floor = -right * math.log(right) - (n - 1) * other * math.log(other)
    numbers = {"zero": 0.0, "share": smoothing, "floor": floor, "guess": math.log(n)}
    options = tuple(Option(word, f"{number:.2f}") for word, number in sorted(numbers.items(), key=lambda one: one[1]))
    losses = _column(case, "loss")
    values = {"floor": floor, "p": right, "loss": float(losses[_kept(case)]), "n": n}
    return Answer(right="floor", options=options, values=values)


def training_above_dev(case: Case) -> Answer:
    """Why the loss in training is higher than that of sentences that were never learned from."""
    loss, dev = (float(_column(case, name)[_kept(case)]) for name in ("loss", "dev_loss"))
    smoothing, dropout = smoothing_of(case), case.checkpoint.config.dropout
    if loss <= dev:
        raise NotHere(
            "This step asks why the training loss is higher than the dev loss, but for this checkpoint it is not."
        )
    values = {"loss": loss, "dev": dev, "smoothing": smoothing, "dropout": dropout}
    options = worded("recipe", "seen", "easy", "overfitting")
    return Answer(right="recipe", options=options, values=values, variant="both" if dropout else "smoothing")


def run_twice(case: Case) -> Answer:
    """Whether two runs of one sentence differ: where dropout acted, they would."""
    if not anatomy(case.checkpoint.config).writes or not case.trace.n_steps:
        raise NotHere("This model writes nothing for this sentence; try another one.")
    again = case.checkpoint.run(case.trace.query)
    same = again.tgt_ids == case.trace.tgt_ids
    apart = float(np.abs(again.log_probs - case.trace.log_probs).max()) if same else math.inf
    right = "same" if same and only_rounding(apart) else "differ"
    values = {"dropout": case.checkpoint.config.dropout, "n": case.trace.n_steps}
    variant = "dropped" if values["dropout"] else "never"
    return Answer(right=right, options=worded("same", "slightly", "differ"), values=values, variant=variant)


def half_that_taught_more(case: Case) -> Answer:
    """In which half of the training the loss on the dev file fell more."""
    dev = _column(case, "dev_loss")
    if len(dev) < 3:
        raise NotHere("This training has too few epochs to split into halves.")
    middle = len(dev) // 2
    first, second = float(dev[0] - dev[middle]), float(dev[middle] - dev[-1])
    values = {"begin": float(dev[0]), "middle": float(dev[middle]), "end": float(dev[-1])}
    values |= {"at": middle + 1, "epochs": len(dev)}
    right = "first" if first > second else "second"
    return Answer(right=right, options=worded("first", "second"), values=values)


def _column(case: Case, name: str) -> np.ndarray:
    """A column of the learning curve without gaps."""
    found = np.asarray(curve_of(case).columns.get(name, ()), np.float64)
    if not len(found) or not np.isfinite(found).all():
        raise NotHere("What this step asks about was not recorded when this checkpoint was trained.")
    return found


def _kept(case: Case) -> int:
    """The row of the epoch that the checkpoint holds."""
    curve, kept = curve_of(case), case.checkpoint.card.training.get("epochs")
    return curve.epochs.index(kept) if kept in curve.epochs else len(curve.epochs) - 1
