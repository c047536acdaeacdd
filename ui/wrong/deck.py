"""All cards of the page What goes wrong, in the order in which they are offered."""

from __future__ import annotations

from typing import Final

from ui.wrong import layer_mistakes, leak, masks, order_mistakes, softmax
from ui.wrong.card import Card

CARDS: Final[tuple[Card, ...]] = (
    leak.CARD,
    masks.INVERTED,
    masks.AXIS,
    softmax.SCALE,
    softmax.TWICE,
    order_mistakes.POSITIONS,
    order_mistakes.SHIFTED,
    layer_mistakes.HEADS,
    layer_mistakes.NORMS,
    masks.NAN,
    layer_mistakes.RESIDUAL,
    order_mistakes.EMBEDDING,
)
