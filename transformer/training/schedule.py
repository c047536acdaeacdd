"""The learning rate over the training: up in a straight line to the peak, then down to almost nothing in another.

Source: the warm-up is that of Vaswani et al. (2017), section 5.3. The decay is linear in progress rather than their
inverse square root, because the length of a training is known here and a rate that ends near 0 scores better.

The peak is reached: the way down begins where the way up ends, and a warm-up longer than half of the training ends
there. (Up to version 1 of the training state the way down began at the first step, so that the two lines met below
the peak, at total / (total + warmup) of it. A rate and a warm-up both multiplied by that number give the same rates
here, but for the last hundredth.)
"""

NAME = "up to the rate itself, then down"  # a training goes on only with the schedule that it began with
LATEST = 0.5  # share of the training at which the warm-up ends, however many steps it was to have
LEAST = 0.01  # share of the peak that is left at the end


def warmed(step: int, progress: float, *, warmup: int) -> float:
    """How much of the warm-up is done, 0 to 1; arguments as for `learning_rate`."""
    return min(max(step / max(warmup, 1), progress / LATEST), 1.0)


def learning_rate(step: int, progress: float, *, peak: float, warmup: int, turn: float | None) -> float:
    """The rate of one step, counted from 1: `peak` itself at the turn, 1 % of it at the end.

    `progress` is the share of the training that is done, `warmup` the steps until the peak; `turn` is the progress of
    the first step that was wholly warmed up, None before it.
    """
    if turn is None:
        return peak * warmed(step, progress, warmup=warmup)
    if progress <= turn:
        return peak
    return peak * max((1.0 - progress) / (1.0 - turn), LEAST)
