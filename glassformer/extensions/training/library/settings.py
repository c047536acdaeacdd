"""Training settings: one record, each field within its limits; and the learning rate schedule.

    linear         in a straight line, to almost nothing; best if the length of the training is known
    cosine         along half a cosine, to almost nothing (Loshchilov and Hutter, "SGDR", 2017, without restarts)
    inverse-sqrt   with one over the root of the step, for a training that may end anywhere

Source: the warm-up, and the inverse square root after it, are those of Vaswani et al. (2017), section 5.3.

The peak is reached: the decay begins where the warm-up ends, and a warm-up longer than half of the training ends
there.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args, get_type_hints

from transformer.errors import ConfigError, shown

Schedule = Literal["linear", "cosine", "inverse-sqrt"]

# A training resumes only with its own schedule; each version of a schedule has a new name.
SCHEDULES: dict[Schedule, str] = {
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

    `progress` is the share of the training that is done, `warmup` the steps until the peak, `turn` the progress at the
    first step after the warm-up, None before it.
    """
    if turn is None:
        return peak * warmed(step, progress, warmup=warmup)
    if progress <= turn:
        return peak
    return peak * max(DOWN[schedule](progress, turn), LEAST)


Precision = Literal["bf16", "fp16", "fp32"]

CHOICES = {"schedule": get_args(Schedule), "precision": get_args(Precision)}
# What a training that goes on may have otherwise than before: its end, and what does not change what is learned,
NOT_LEARNED = ("epochs", "max_minutes", "patience", "save_minutes")
ROUNDED = ("precision", "accumulate", "shard")  # or changes it in the last bits only.


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of a training, numbers with their limits. Raises `ConfigError`: a value is out of range.

    The limits are far beyond any sensible value: what lies outside is a mistake, or a way to train nothing.
    """

    epochs: Annotated[int, 1, 1_000_000] = 10  # passes over the training pairs
    # The rate nears 0 by then; the step in which this time is up is the last, also within an epoch, and is still scored
    # and stored. 0 for no limit.
    max_minutes: Annotated[float, 0, 10_000_000] = 0.0
    batch_tokens: Annotated[int, 1, 10_000_000] = 3000  # target tokens a step, with padding, of all processes
    accumulate: Annotated[int, 1, 10_000] = 1  # parts in which a process learns from its share of a step: less memory
    peak_rate: Annotated[float, 1e-8, 1] = 1.2e-3  # highest learning rate, which one step has (see `learning_rate`)
    schedule: Schedule = "linear"  # the way down from there
    warmup: Annotated[int, 0, 10_000_000] = 800  # steps until the peak; at most half of the training
    smoothing: Annotated[float, 0, 0.9] = 0.1  # label smoothing
    # Alpha of splits sampled each epoch (see `Sampler.draw`); 0 for none.
    sampling: Annotated[float, 0, 1_000] = 0.0
    clip: Annotated[float, 1e-6, 1_000_000] = 1.0  # largest norm of the gradient
    weight_decay: Annotated[float, 0, 1] = 0.01  # of AdamW, on matrices only
    average: Annotated[int, 1, 100] = 1  # the scored and stored model is the mean of this many epochs' parameters
    patience: Annotated[int, 0, 1_000_000] = 0  # end after this many epochs without improvement; 0 for never
    seed: Annotated[int, 0, 2**32 - 1] = 1  # decides initial values, dropout and order
    precision: Precision = "bf16"  # of the products
    shard: bool = False  # share parameters and moments between the processes, instead of each having all
    save_minutes: Annotated[float, 0, 10_000_000] = 10.0  # the state is stored this often; 0 for after every step
    # Whether the decoder has its causal mask in training; for the effect see `transformer.model.taps`.
    causal_mask: bool = True

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if not low <= value <= high:  # nor is NaN
                raise ConfigError(
                    name,
                    "found {found}, expected a value from {low:,} to {high:,}.",
                    found=shown(value),
                    low=low,
                    high=high,
                )
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(
                    name, "found {found}, expected one of {choices}.", found=shown(value), choices=", ".join(choices)
                )


_HINTS = get_type_hints(TrainSettings, include_extras=True)
LIMITS = {name: hint.__metadata__ for name, hint in _HINTS.items() if hasattr(hint, "__metadata__")}
