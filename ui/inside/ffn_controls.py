"""The choices of the feed-forward part, and the layer that they lead to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from transformer.model.anatomy import StackName, anatomy
from ui.inside.features import ACTIVATIONS
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import choices
from ui.state.view import Side, Slot
from words import say

LAYER: Final = "ffn_layer"
TOKEN: Final = "ffn_token"
NEURON: Final = "ffn_neuron"

# A neuron of another layer has nothing but its number in common.
FORGETS: Final = ("neuron",)


@dataclass(frozen=True)
class OpenLayer:
    """What the part draws; arrays have a row for each token that may be seen."""

    run: OpenRun  # what is looked at
    side: Side  # whose sub-layers
    layer: int  # which layer, from 0
    pieces: list[str]  # the tokens; of the output the rows "reads → predicts"
    token: int  # the one that is looked at
    neuron: int  # the neuron that is looked at: the chosen one, else the most active of the token
    before: np.ndarray  # pre-activations and activations of the layer [token, d_ff]
    after: np.ndarray  # pre-activations and activations of the layer [token, d_ff]
    written: np.ndarray  # length of each neuron's column of down_proj [d_ff]
    shares: np.ndarray  # share of silent neurons [layer, token]
    recorded: dict[str, np.ndarray]  # all that the pass recorded; its rows after `pieces` must not be seen

    @property
    def stack(self) -> StackName:
        """Whose layers."""
        return STACKS[self.side]

    @property
    def whose(self) -> str:
        """The token that is looked at, for titles."""
        return self.pieces[self.token]

    @property
    def bias(self) -> bool:
        """Whether its sub-layers have biases."""
        return self.run.checkpoint.config.biases.ffn

    @property
    def gated(self) -> bool:
        """Whether its sub-layers have a gate: then `before` is what the gate reads, `after` the product."""
        return self.run.checkpoint.config.gated

    @property
    def kind(self) -> str:
        """The activation function, as the config names it."""
        return str(self.run.checkpoint.config.activation)

    @property
    def function(self) -> str:
        """The activation function, as people call it."""
        return ACTIVATIONS[self.kind]


def choose_layer(run: OpenRun, side: Side) -> int:
    """Draw the choice of a layer; all together, which other pages have, is none here."""
    count = anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers
    kept = choices.field(run.slot, "layer", key=LAYER, forgets=FORGETS)
    kept = replace(kept, value=min(kept.value or 0, count - 1))
    return choices.menu_of_layers(kept, count, all_together=False) or 0


def take_layer(slot: Slot, layer: int) -> None:
    """Callback: look at a layer."""
    choices.put(slot, "layer", FORGETS, layer)


def choose_neuron(run: OpenRun, stack: StackName) -> None:
    """Draw the choice of a neuron by its number, counted from 1."""
    d_ff = run.checkpoint.config.of(stack).d_ff
    choices.number(
        choices.field(run.slot, "neuron", key=NEURON),
        say("Neuron (1 to {most:,})", most=d_ff),
        d_ff,
        placeholder=say("Most active neuron"),
        bare=True,
        help=say("Left empty, it is the most active one of the token."),
        width=210,
    )
