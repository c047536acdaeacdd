"""A query string inside a query string: what the second run of a comparison differs in from the first.

`model=en-fr&layer=2` says that the second run is one of another checkpoint, of which layer 2 is looked at; `layer=`
that it looks at all layers, whatever the first one looks at. Only the form is looked at here: what the values may be
is looked at where they are used (`extensions.what_if.comparing`).
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode

RUN: Final = ("model", "rev", "answers", "src", "how", "beam", "lp", "temp", "k", "p", "seed", "max", "forced",
              "result", "do")  # fmt: skip
LOOKED_AT: Final = ("kind", "layer", "head", "together")
STEP: Final = "step"
NAMES: Final = (*RUN, *LOOKED_AT, STEP)
"""The parameters that a second run may have of its own; all others are those of the first."""

LONGEST: Final = 14_000  # characters: a source of 4,000, each of them up to three once written


def write(said: Mapping[str, str]) -> str:
    """What the second run differs in as text, always in the same order; nothing for nothing."""
    return urlencode({name: said[name] for name in NAMES if name in said}, safe="@")


def read(text: str) -> dict[str, str] | None:
    """What `write` wrote, by name; None for anything else."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=len(NAMES)) if text else []
    except ValueError:
        return None
    said = dict(pairs)
    return said if len(said) == len(pairs) and set(said) <= set(NAMES) else None


def without(text: str, *names: str) -> str:
    """What a second run differs in, but for some names."""
    return write({name: value for name, value in (read(text) or {}).items() if name not in names})
