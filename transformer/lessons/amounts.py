"""How an amount that may be exactly 0, or rounding, is written in a text."""

from __future__ import annotations

from words import say

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def amount(value: float) -> str:
    """A difference to two digits; only 0 itself is called so.

    Args:
        value: At least 0.
    """
    if value == 0:
        return say("exactly 0")
    mantissa, exponential, exponent = f"{value:.2g}".partition("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}" if exponential else mantissa
