"""What can be shown of maps that were given: which sizes and texts.

Weights that are there and the header of a file that claims them go through the same checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from transformer.errors import MapsError, shown
from transformer.model.anatomy import Kind
from words import say_n

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MOST_LAYERS: Final = 200
MOST_HEADS: Final = 256
MOST_TOKENS: Final = 1_024
MOST_CELLS: Final = 25_000_000  # weights of all attentions together: 100 MB
MOST_LABEL: Final = 200  # characters
MOST_TEXT: Final = 4_000
MOST_SPECIAL: Final = 256


def check_shape(name: str, shape: Sequence[int]) -> None:
    """Raise a MapsError if no weights [layer, head, query, key] can have this shape."""
    if len(shape) != 4:
        raise MapsError(
            "{name}: the weights have the shape {shape}; four axes are needed, [layer, head, query, key].",
            name=name,
            shape=shown(tuple(shape)),
        )
    most = (MOST_LAYERS, MOST_HEADS, MOST_TOKENS, MOST_TOKENS)
    if not all(1 <= count <= limit for count, limit in zip(shape, most, strict=True)):
        raise MapsError(
            "{name}: the weights have the shape {shape}; at most {layers} layers, {heads} heads and {tokens:,} "
            "tokens a side can be shown, and at least one of each. Give a part of them.",
            name=name,
            shape=shown(tuple(shape)),
            layers=MOST_LAYERS,
            heads=MOST_HEADS,
            tokens=MOST_TOKENS,
        )


def check_cells(count: int) -> None:
    """Raise a MapsError if all attentions together have too many weights."""
    if count > MOST_CELLS:
        raise MapsError(
            "{count:,} weights in all; at most {most:,} can be shown. Give fewer layers, or a shorter sentence.",
            count=count,
            most=MOST_CELLS,
        )


def check_text(name: str, text: object, most: int) -> None:
    """Raise a MapsError if something is no text that a page can show."""
    if not isinstance(text, str):
        raise MapsError("{name}: expected text, found {found}.", name=name, found=shown(text))
    if len(text) > most:
        raise MapsError(
            say_n(
                "{name}: a text of {n:,} character; at most {most:,} are taken.",
                "{name}: a text of {n:,} characters; at most {most:,} are taken.",
                len(text),
                name=name,
                most=most,
            )
        )
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise MapsError(
            "{name}: {text} has a character that is none (a NUL, or half of a pair); leave it out.",
            name=name,
            text=shown(text),
        )
