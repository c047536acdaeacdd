"""Part "Feed-forward": choice of layer, token and neuron; silent and active neurons; what one neuron writes.

What a neuron is for, nobody says here: only what it did in this sentence, and what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from glassformer.inside import InsideLook, ffn_pictures, inside_controls
from glassformer.inside.ffn_pictures import OpenLayer, layer_of, open_layer
from glassformer.inside.token_selection import pieces_of, writes
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import STACK_NAMES, STACKS
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import ask_first, show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.i18n import paragraph, say
from transformer.model.anatomy import anatomy

LAYER, TOKEN, NEURON, REVEAL = "ffn_layer", "ffn_token", "ffn_neuron", "ffn_reveal"
_FORGETS: Final = ("neuron",)  # one of another layer has nothing but its number in common


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    with row:
        side = inside_controls.choose_side(run, controls.field(run.slot, "side", forgets=_FORGETS))
        count = anatomy(run.checkpoint.config).stack(STACKS[side]).n_layers
        kept = replace(controls.field(run.slot, "layer", key=LAYER, forgets=_FORGETS), value=layer_of(run, side))
        controls.menu_of_layers(kept, count, all_together=False)
        inside_controls.choose_token(run, side, pieces_of(run, side), key=TOKEN, width=180)
        d_ff = run.checkpoint.config.of(STACKS[side]).d_ff
        controls.number(
            controls.field(run.slot, "neuron", key=NEURON),
            say("Neuron (1 to {most:,})", most=d_ff),
            d_ff,
            placeholder=say("Most active neuron"),
            bare=True,
            help=say("Leave this empty to use the token's most active neuron."),
            width=210,
        )
    o = attempt(lambda: open_layer(run))
    if o is None:
        return
    if (asked := run.view.of(InsideLook).neuron) is not None and asked >= d_ff:
        said = say("There is no neuron {neuron}: this layer has only {n:,} neurons.", neuron=asked + 1, n=d_ff)
        drawing.notes((said,))
    slot, take = run.slot, inside_controls.taking(run, side)

    def look_at(neuron: int) -> None:
        session.replace(slot, neuron=neuron)

    def take_both(cell: tuple[int, int]) -> None:
        controls.put(slot, "layer", _FORGETS, cell[0])
        take(cell[1])

    def look_at_both(cell: tuple[int, int]) -> None:
        look_at(cell[1])
        take(cell[0])

    drawing.beside(partial(show, ffn_pictures.shares, o, take=take_both), partial(show, ffn_pictures.histogram, o))
    drawing.explain(drawing.plain(what_it_does(o)))
    drawing.beside(
        partial(show, ffn_pictures.active, o, take=look_at), partial(show, ffn_pictures.by_token, o, take=take)
    )
    _neuron(run, o)
    show(ffn_pictures.neuron_map, o, take=look_at_both)


@paragraph
def what_it_does(o: OpenLayer) -> Iterator[str]:
    """The widths of the sub-layer, and what it computes."""
    config = o.run.checkpoint.config.of(o.stack)
    yield say(
        "Layer {layer} of the {stack} widens each token's {d_model:,} numbers to {d_ff:,} neurons (d_ff = "
        "{ratio:g} × d_model), applies {function} and narrows them again, separately for each token.",
        layer=o.layer + 1,
        stack=STACK_NAMES[o.stack],
        d_model=config.d_model,
        d_ff=config.d_ff,
        ratio=config.d_ff / config.d_model,
        function=o.function,
    )


def _neuron(run: OpenRun, o: OpenLayer) -> None:
    """Draw what the selected neuron writes, and in the decoder which pieces it raises and lowers."""
    if anatomy(run.checkpoint.config).fills:
        st.caption(say("This page does not show how a neuron changes the logits of the MLM head."))
    elif not anatomy(run.checkpoint.config).writes:
        st.caption(say("This encoder-only model generates no output, so it has no logits that a neuron could change."))
    elif not writes(run, o.stack):
        said = say(
            "An encoder neuron writes into the memory, not directly to the logits. Its effect on the logits "
            "depends on the decoder."
        )
        drawing.explain(said)
    elif run.visible.covered:
        ask_first(run, say("The tokens whose logits this neuron raises could give the answer away."), key=REVEAL)
    elif attempt(lambda: o.effect) is not None:
        show(ffn_pictures.effect, o)
        if run.checkpoint.config.logit_cap:
            st.caption(say("These are the logits before the soft cap is applied."))
