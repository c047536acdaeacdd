"""Rounds the numbers of large maps to reduce payload size.

Hover shows four digits. So five are kept while that is affordable, three in larger maps.
"""

import numpy as np

MOST_EXACT = 4_096
"""Cells of the largest map whose numbers stay as they are; a larger one has five digits, in three bytes a number."""
MOST_FIVE = 65_536
"""Cells of the largest map that has five digits; a larger one has three, in two bytes a number."""
HALF_DIGITS, THREE_BYTE_DIGITS = 3, 5


def shortened(drawn: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Round the numbers of a map, float32 of any shape, if it is large; NaN and infinity stay.

    Returns the numbers, and the number of digits left; None if nothing was lost. With five digits they are still
    float32 but end in a byte of zeros, which `plotly_view` leaves out; with three they are float16, if they are in
    its range.
    """
    if drawn.size <= MOST_EXACT:
        return drawn, None
    if drawn.size <= MOST_FIVE:
        short, digits = _three_bytes(drawn), THREE_BYTE_DIGITS
    elif np.nanmax(np.abs(drawn), initial=0) < np.finfo(np.float16).max:
        short, digits = drawn.astype(np.float16), HALF_DIGITS
    else:
        return drawn, None
    return short, None if np.array_equal(short, drawn, equal_nan=True) else digits


def _three_bytes(drawn: np.ndarray) -> np.ndarray:
    """Round float32 to 16 bits of fraction."""
    rounded = ((drawn.view(np.uint32) + np.uint32(0x80)) & np.uint32(0xFFFFFF00)).view(np.float32)
    return np.where(np.isfinite(drawn) & np.isfinite(rounded), rounded, drawn)
