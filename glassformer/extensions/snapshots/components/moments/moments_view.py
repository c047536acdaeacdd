"""A slider over the training of a checkpoint: a stop for each snapshot, and at the right end the checkpoint itself.

The browser moves it and says what a stop is; Python hears where the reader came to rest, and of each stop on the way
while the training is played.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from glassformer.components.element import Element, is_count, told

_MOMENTS = Element("moments")


@dataclass(frozen=True)
class Stop:
    """One stop."""

    step: int | None  # of the training; None for the checkpoint itself
    name: str  # what it is called
    told: str  # how good the model was


@dataclass(frozen=True)
class Move:
    """Where the reader went."""

    step: int | None  # as of `Stop`
    passing: bool  # whether the next stop follows by itself


def moments_view(
    stops: Sequence[Stop],
    *,
    key: str,  # names this place on the page
    of: str,  # the checkpoint
    at: int,  # the stop that is shown
    revision: int,  # another one moves the reader there, for example after the browser's Back button
    on_move: Callable[[], None],  # `moved` then says where
) -> None:
    """Draw it."""
    payload = {"of": of, "stops": [asdict(stop) for stop in stops], "at": at, "revision": revision}
    _MOMENTS.draw(payload, key=key, hears={"move": on_move})


def moved(key: str, *, of: str) -> Move | None:
    """Where the reader of the slider of a key went; None if that is no stop of this checkpoint."""
    said = told(key, "move")
    if not isinstance(said, dict) or said.get("of") != of:
        return None
    step = said.get("step")
    return Move(step, said.get("passing") is True) if step is None or is_count(step) else None
