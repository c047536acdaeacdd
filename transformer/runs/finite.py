"""Find the site where a model first computed a value that is not finite (NaN or infinite).

Checking every value would cost as much as the model itself. So only the end of a pass is checked: what was recorded,
or the logits. If that is not finite, the pass is repeated and every site is checked, in the order of the computation.

A tap may put in infinite values on purpose: -inf closes a score. Such a value is not counted, but what the model
computes from it is.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from transformer.errors import NotFiniteError
from transformer.model.taps import NO_TAP, Onlooker, Tap, both, tap_of

Pass = Callable[[Tap], object]
"""Makes a pass of the model with a tap."""


def check_recorded(values: Iterable[Tensor], again: Pass, *, tap: Tap) -> None:
    """Refuse a pass, made with this tap, in which the model computed a value that is not finite.

    If a recorded value is not finite, the pass is repeated; the NotFiniteError names the first site where the model,
    not the tap, caused it.
    """
    if not all(_is_finite(value) for value in values):
        site = first_site(again, tap=tap)
        if site is not None:
            raise not_finite(site, tap=tap)


def first_site(again: Pass, *, tap: Tap) -> str | None:
    """The first site where the model computes a value that is not finite; None if only the tap put it there."""
    found, suspect = list[str](), torch.tensor(False)

    def search(site: str, value: Tensor) -> None:  # before the taps: what the model computed
        nonlocal suspect
        suspect = ~value.isfinite()

    def confirm(site: str, value: Tensor) -> None:  # after the taps: what they mended goes no further
        if bool((suspect & ~value.isfinite()).any()):
            found.append(site)

    again(both(tap_of(Onlooker(["*"], search)), tap).also(Onlooker(["*"], confirm)))
    return found[0] if found else None


def not_finite(site: str, *, tap: Tap = NO_TAP) -> NotFiniteError:
    """The error for a site, in a pass with this tap."""
    if any(not isinstance(visitor, Onlooker) for visitor in tap.visitors):
        return NotFiniteError(
            "With its changes, this model computes NaN (not a number) or an infinite value at {site}, and this "
            "spreads to everything computed from it. Undo the changes.",
            site=site,
        )
    return NotFiniteError(
        "At {site} this model computes NaN (not a number) or an infinite value: its parameters are damaged or far "
        "too large. Choose another checkpoint.",
        site=site,
    )


def _is_finite(value: Tensor) -> bool:
    if not value.is_floating_point():
        return True
    # A sum is the cheapest look at all values; only one that overflows has to be looked at again.
    return math.isfinite(value.sum()) or bool(value.isfinite().all())
