"""Numbers as people write them."""

from transformer.i18n.numbers import written


def digits(number: float) -> str:
    """A number of any size, short: 2.98 × 10⁻⁸ or 1.817."""
    if number == 0 or abs(number) >= 1e-3:
        return written(f"{number:.4g}")
    return written(f"{number:.2e}")


def short(number: float) -> str:
    """A wavelength to four digits: 6.283 or 58,470."""
    return f"{number:.4g}" if number < 1000 else f"{float(f'{number:.4g}'):,.0f}"
