"""Where a block of the diagram leads: a page, and what is looked at there.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from transformer.model.anatomy import EVERY_PART, StackName
from ui.runs.sides import SIDE_OF


@dataclass(frozen=True)
class Destination:
    """Where a block leads."""

    page: str | None  # name of another page in an address; None for a part of this one
    fields: dict[str, object] = field(default_factory=dict)  # what is looked at there, by the names of `View`


def destination(place: str) -> Destination:
    """Where a block leads.

    Args:
        place: A block's place, such as `encoder.0.self_attn`.
    """
    stack = next(stack.name for stack in EVERY_PART.stacks if place.startswith(f"{stack.name}."))
    side: dict[str, object] = {"side": SIDE_OF[stack]}
    match place.split(".")[1:]:
        case [layer, *rest] if layer.isdigit():
            return _in_layer(stack, int(layer), rest, side)
        case ["mask"]:
            wanted = {"encoder": "source", "decoder": "decoder"}[stack]
            return Destination("masks", {"mask": wanted, "masks_panel": "masks"})
        case ["embedding"]:
            return Destination("positions", side | {"positions_panel": "sentence"})
        case ["positions"]:
            return Destination("positions", side | {"positions_panel": "table"})
        case ["ids"]:
            return Destination(None, side | {"inside_panel": "pieces"})
        case ["final_norm" | "memory" | "mlm_head"]:
            return Destination(None, side | {"inside_panel": "stream"})
    return Destination(None, {"inside_panel": "lens"})


def _in_layer(stack: StackName, layer: int, rest: list[str], side: dict[str, object]) -> Destination:
    found = [one for one in EVERY_PART.attentions if one.place(layer) == f"{stack}.{layer}.{rest[0]}"]
    where: dict[str, object] = {"kind": found[0].kind if found else stack, "layer": layer}
    if len(rest) > 1:
        return Destination(None, side | where | {"inside_panel": "stream"})
    if not found:
        return Destination(None, side | where | {"inside_panel": "ffn"})
    return Destination("attention", where | {"head": None, "panel": "overview"})
