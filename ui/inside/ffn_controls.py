"""The choices of the feed-forward part: side, layer, token and neuron."""

from __future__ import annotations

from typing import Final

from transformer.model.anatomy import anatomy
from ui.inside import tokens
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import choices
from ui.state.view import Side, Slot
from words import say

LAYER: Final = "ffn_layer"
TOKEN: Final = "ffn_token"
NEURON: Final = "ffn_neuron"

# A neuron of another layer has nothing but its number in common.
_FORGETS: Final = ("neuron",)


def choose_side(run: OpenRun) -> Side:
    """Draw the choice of a side."""
    return tokens.choose_side(run, choices.field(run.slot, "side", forgets=_FORGETS))


def choose_layer(run: OpenRun, side: Side) -> int:
    """Draw the choice of a layer; all together, which other pages have, is none here."""
    count = anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers
    kept = choices.field(run.slot, "layer", key=LAYER, forgets=_FORGETS)
    return choices.choose(kept, say("Layer"), choices.numbered(count), otherwise=min(kept.value or 0, count - 1))


def take_layer(slot: Slot, layer: int) -> None:
    """Callback: look at a layer."""
    choices.put(slot, "layer", _FORGETS, layer)


def choose_token(run: OpenRun, side: Side, pieces: list[str]) -> int:
    """Draw the choice of a token."""
    return tokens.choose(run, side, pieces, key=TOKEN, width=240)


def choose_neuron(run: OpenRun) -> None:
    """Draw the choice of a neuron by its number, counted from 1."""
    d_ff = run.checkpoint.config.d_ff
    choices.number(
        choices.field(run.slot, "neuron", key=NEURON),
        say("Neuron (1 to {most:,})", most=d_ff),
        d_ff,
        placeholder=say("most active"),
        help=say("Left empty, it is the most active one of the token."),
        width=180,
    )
