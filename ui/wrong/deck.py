"""All cards of the page What goes wrong, in the order in which they are offered."""

from __future__ import annotations

from typing import Final

from ui.wrong import layers, leak, masks, order, softmax
from ui.wrong.card import Card

CARDS: Final[tuple[Card, ...]] = (
    leak.CARD,
    masks.INVERTED,
    masks.AXIS,
    softmax.SCALE,
    softmax.TWICE,
    order.POSITIONS,
    order.SHIFTED,
    layers.HEADS,
    layers.NORMS,
    masks.NAN,
    layers.RESIDUAL,
    order.EMBEDDING,
)
