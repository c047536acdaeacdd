"""The learning rate over the training: up in a straight line to the peak, then down.

    linear         in another straight line, to almost nothing; best where the length of the training is known
    cosine         along half a cosine, to almost nothing (Loshchilov and Hutter, "SGDR", 2017, without restarts)
    inverse-sqrt   with one over the root of the step, for a training that may end anywhere

Source: the warm-up, and the inverse square root after it, are those of Vaswani et al. (2017), section 5.3.

The peak is reached: the way down begins where the way up ends, and a warm-up longer than half of the training ends
there. (Up to version 1 of the training state the way down began at the first step, so that the two lines met below
the peak, at total / (total + warmup) of it. A rate and a warm-up both multiplied by that number give the same rates
here, but for the last hundredth.)
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal

Schedule = Literal["linear", "cosine", "inverse-sqrt"]

# A training goes on only with the schedule that it began with; each has a name that tells it from earlier ones.
NAMES: dict[Schedule, str] = {
    "linear": "up to the rate itself, then down",
    "cosine": "up to the rate itself, then down a cosine",
    "inverse-sqrt": "up to the rate itself, then down with the root of the step",
}
LATEST = 0.5  # share of the training at which the warm-up ends, however many steps it was to have
LEAST = 0.01  # share of the peak that is left at the end


# From the progress now and at the turn, both shares of the training: what share of the peak is left.
DOWN: Mapping[Schedule, Callable[[float, float], float]] = {
    "linear": lambda now, turn: (1.0 - now) / (1.0 - turn),
    "cosine": lambda now, turn: 0.5 + 0.5 * math.cos(math.pi * min((now - turn) / (1.0 - turn), 1.0)),
    "inverse-sqrt": lambda now, turn: math.sqrt(turn / now),
}


def warmed(step: int, progress: float, *, warmup: int) -> float:
    """How much of the warm-up is done, 0 to 1; arguments as for `learning_rate`."""
    return min(max(step / max(warmup, 1), progress / LATEST), 1.0)


def learning_rate(
    step: int, progress: float, *, peak: float, warmup: int, turn: float | None, schedule: Schedule = "linear"
) -> float:
    """The rate of one step, counted from 1: `peak` itself at the turn, at least 1 % of it after that.

    `progress` is the share of the training that is done, `warmup` the steps until the peak; `turn` is the progress of
    the first step that was wholly warmed up, None before it.
    """
    if turn is None:
        return peak * warmed(step, progress, warmup=warmup)
    if progress <= turn:
        return peak
    return peak * max(DOWN[schedule](progress, turn), LEAST)
