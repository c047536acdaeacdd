"""The controls of the Positions page for models whose positions act inside attention, and what they leave chosen."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.analysis.rotations import Turning, turnings
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Kind, StackName, anatomy
from transformer.model.config import ModelConfig
from ui.positions import counting, otherwise
from ui.runs.sides import SIDE_OF, SIDES, STACKS, fit_parts
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import PositionsPanel, Slot, View
from words import joined, say, say_n

ROTARY: dict[PositionsPanel, str] = {
    "rotations": say("Rotations"),
    "pair": say("One pair"),
    "distance": say("Score by distance"),
    "sentence": say("Sentence"),
}
BIAS: dict[PositionsPanel, str] = {"distance": say("Bias by distance"), "sentence": say("Sentence")}
LAYERS = "positions_layers"


@dataclass(frozen=True)
class Shown:
    """What of a model's positions is looked at."""

    checkpoint: Checkpoint  # the model
    stack: StackName  # whose attentions
    panel: PositionsPanel  # the part
    turning: Turning | None  # how the chosen layers turn; None where nothing turns at all
    count: int  # how many positions, or how far a distance goes
    view: View  # what is looked at
    slot: Slot  # where it is drawn

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""
        return self.checkpoint.config

    @property
    def kind(self) -> Kind:
        """The self-attention of the stack, which is called by it."""
        return self.stack

    @property
    def causal(self) -> bool:
        """Whether no key comes after its query."""
        return anatomy(self.config).attention(self.kind).causal

    @property
    def whose(self) -> str:
        """The stack in a few words, for titles."""
        if len(anatomy(self.config).stacks) == 1:
            return self.checkpoint.name
        if self.stack == "encoder":
            return say("{name}, encoder", name=self.checkpoint.name)
        return say("{name}, decoder", name=self.checkpoint.name)

    def key(self, name: str) -> str:
        """The key of something that is drawn of it."""
        return f"{self.slot}{name}"


def draw(checkpoint: Checkpoint, slot: Slot) -> Shown | None:
    """Draw the controls, and return what is to be drawn; of a model without positions a sentence says so."""
    config = checkpoint.config
    if config.positions == "none":
        st.info(otherwise.instead_of_a_table(config))
        return None
    parts = BIAS if config.rotary is None else ROTARY
    _settle(config, parts, slot)
    with choices.bar(slot):
        panel = choices.choose(choices.field(slot, "positions_panel"), say("Part"), parts, bare=True)
        stacks = [stack.name for stack in anatomy(config).stacks]
        if len(stacks) > 1:
            sides = {SIDE_OF[stack]: SIDES[SIDE_OF[stack]] for stack in stacks}
            choices.choose(choices.field(slot, "side"), say("Side"), sides, bare=True)
        view = fit_parts(session.view(slot), anatomy(config))[0]
        turning = None if config.rotary is None else _turning(config, STACKS[view.side], panel, slot)
        if panel in ("rotations", "pair", "distance"):
            counting.choose(config.max_len, slot)
    st.caption(drawing.plain(joined(" ", [otherwise.instead_of_a_table(config), *_cross(config)])))
    view = fit_parts(session.view(slot), anatomy(config))[0]
    count = counting.chosen(view, config.max_len)
    return Shown(checkpoint, STACKS[view.side], panel, turning, count, view, slot)


def _settle(config: ModelConfig, parts: dict[PositionsPanel, str], slot: Slot) -> None:
    """Let go of a part that a link or another checkpoint left behind; the page's own choice needs no word."""
    panel = session.view(slot).positions_panel
    if panel not in parts and panel != View.positions_panel:
        session.add_note(otherwise.no_such_part(config, panel), slot)
        session.replace(slot, positions_panel=View.positions_panel)


def _cross(config: ModelConfig) -> list[str]:
    if "cross" not in anatomy(config).kinds:
        return []
    return [
        say(
            "Cross-attention has none: a query's position in one text says nothing about a key's position in another."
        )
    ]


def _turning(config: ModelConfig, stack: StackName, panel: PositionsPanel, slot: Slot) -> Turning:
    """Draw the choice among layers that turn otherwise than each other, where there are such."""
    found = turnings(config, stack)
    asked = session.view(slot).layer
    own = next((one for one in found if asked in one.layers), None)
    shown = own or next((one for one in found if one.n_pairs), found[0])
    if len(found) > 1 and panel != "sentence":  # that part has a choice of layers of its own
        kept = choices.Kept(f"{slot}{LAYERS}", shown.layers[0], lambda layer: session.replace(slot, layer=layer))
        choices.menu(kept, say("Layers"), {one.layers[0]: _name(one) for one in found}, bare=True, width=300)
    return shown


def _name(turning: Turning) -> str:
    """A group of layers in a menu."""
    n, numbers = len(turning.layers), layers_said(turning)
    if not turning.n_pairs:
        return say_n("Layer {numbers}: nothing turns", "Layers {numbers}: nothing turns", n, numbers=numbers)
    if turning.window:
        return say_n("Layer {numbers}: window, base {base:,g}", "Layers {numbers}: window, base {base:,g}", n,
                     numbers=numbers, base=turning.base)  # fmt: skip
    return say_n("Layer {numbers}: base {base:,g}", "Layers {numbers}: base {base:,g}", n, numbers=numbers,
                 base=turning.base)  # fmt: skip


def layers_said(turning: Turning, *, most: int = 6) -> str:
    """The numbers of the layers; after the first few an ellipsis."""
    numbers = [str(layer + 1) for layer in turning.layers]
    return ", ".join(numbers if len(numbers) <= most else [*numbers[:most], "…"])
