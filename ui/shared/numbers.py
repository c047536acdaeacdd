"""Numbers as people write them."""

from __future__ import annotations

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def digits(number: float) -> str:
    """A number of any size, short: 2.98 × 10⁻⁸ or 1.817."""
    if number == 0 or abs(number) >= 1e-3:
        return f"{number:.4g}"
    return powers(f"{number:.2e}")


def powers(number: str) -> str:
    """A number in Python's writing, as people write it: 1.4e-06 becomes 1.4 × 10⁻⁶."""
    mantissa, exponential, exponent = number.partition("e")
    return f"{mantissa} × 10{str(int(exponent)).translate(_RAISED)}" if exponential else number


def short(number: float) -> str:
    """A wavelength to four digits: 6.283 or 58,470."""
    return f"{number:.4g}" if number < 1000 else f"{float(f'{number:.4g}'):,.0f}"
