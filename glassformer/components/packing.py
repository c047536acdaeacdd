"""Packs arrays of numbers from 0 to 1 into a compact base64 payload.

Most attention weights of a long sentence are next to nothing: at 512 pieces this takes about a fifth of the room.
`common/unpack.js` unpacks it in the browser.
"""

import base64
from typing import Any

import numpy as np

FINE_LEVELS = 65_535
COARSE_LEVELS = 255
MOST_FINE = 75_000
"""Up to so many numbers go in steps of 1/65,535, more in steps of 1/255: at 128 pieces a view stays under 400 kB."""


def packed(shares: np.ndarray) -> dict[str, Any]:
    """Write numbers of any shape as steps; what is beyond 0 to 1 is cut, NaN is 0.

    `levels`: the step that stands for 1; `count`: how many numbers; `steps`: base64 of unsigned integers of 8 or
    (beyond 255 levels) 16 bits, low byte first; `filled`: None, or base64 of a bit for each number, highest bit
    first, and `steps` has only those whose bit is set.
    """
    levels, kind = (FINE_LEVELS, "<u2") if shares.size <= MOST_FINE else (COARSE_LEVELS, "u1")
    steps = np.rint(np.clip(np.nan_to_num(shares), 0.0, 1.0) * levels).astype(kind).ravel()
    filled = steps > 0
    sparse = int(filled.sum()) * steps.itemsize + steps.size // 8 < steps.nbytes
    return {
        "levels": levels,
        "count": steps.size,
        "steps": base64_of(steps[filled] if sparse else steps),
        "filled": base64_of(np.packbits(filled)) if sparse else None,
    }


def base64_of(array: np.ndarray) -> str:
    """The bytes of an array as text."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
