"""Numbers as people write them: with a minus, not a hyphen, and with powers of ten."""

import re

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"(?<=\d)e([+-]\d+)")


def hundredths(part: float) -> str:
    """A share from 0 to 1 in two digits; what is not 0 never reads as 0."""
    return "<0.01" if 0 < part < 0.005 else f"{part:.2f}"


def chance(part: float) -> str:
    """A probability, as `formatProbability` of stepper/numbers.js writes it: only 0 reads as 0, and only 1 as 1."""
    if 0 < part < 0.01:
        return "<0.001" if part < 0.001 else f"{part:.3f}"
    return ">0.99" if 0.995 <= part < 1 else f"{part:.2f}"


def written(text: str) -> str:
    """A number in Python's writing as people write it: -1.4e-06 becomes −1.4 × 10⁻⁶."""
    with_powers = _POWER.sub(lambda found: f" × 10{str(int(found[1])).translate(_RAISED)}", text)
    return with_powers.replace("-", "−", 1) if text.startswith("-") else with_powers


def digits(number: float) -> str:
    """A number of any size, short: 2.98 × 10⁻⁸ or 1.817."""
    if number == 0 or abs(number) >= 1e-3:
        return written(f"{number:.4g}")
    return written(f"{number:.2e}")


def short(number: float) -> str:
    """A wavelength to four digits: 6.283 or 58,470."""
    return f"{number:.4g}" if number < 1000 else f"{float(f'{number:.4g}'):,.0f}"
