"""The learning rate over the training: up in a straight line, then down to almost nothing in a straight line.

Source: the warm-up is that of Vaswani et al. (2017), section 5.3. The decay is linear in progress rather than their
inverse square root, because the length of a training is known here and a rate that ends near 0 scores better.
"""


def learning_rate(step: int, progress: float, *, peak: float, warmup: int) -> float:
    """The rate of one step.

    Args:
        step: Number of the step, from 1.
        progress: Share of the training that is done, 0 to 1.
        peak: The highest rate.
        warmup: Steps until the peak.

    Returns:
        A rate from 0 to `peak`; at the end 1 % of it.
    """
    rising = min(step / max(warmup, 1), 1.0)
    return peak * min(rising, max(1.0 - progress, 0.01))
