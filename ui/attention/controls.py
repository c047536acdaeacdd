"""The controls of the Attention page: which part, attention, layer and head, and how colours and pieces are shown."""

from __future__ import annotations

from typing import Final

from transformer.model.anatomy import Kind, anatomy
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.shared.door import st
from ui.state import session
from ui.state.view import Aggregate, AttentionPanel, Slot
from words import say

PANELS: Final[dict[AttentionPanel, str]] = {
    "overview": say("All heads"),
    "head": say("One map"),
    "flow": say("Flow"),
    "walk": say("One weight"),
    "table": say("What heads do"),
}
KINDS: Final[dict[Kind, str]] = {
    "encoder": say("Encoder self"),
    "decoder": say("Decoder self"),
    "cross": say("Cross"),
}
AGGREGATES: Final[dict[Aggregate, str]] = {"mean": say("Mean"), "max": say("Max"), "rollout": say("Rollout")}
AGGREGATE_HELP: Final = say(
    "What stands for all heads together. Rollout follows the weights through the layers, up to the chosen one; the "
    "text under the map says how."
)
ROW: Final = "attention_controls"


def draw(run: OpenRun) -> None:
    """Draw the choice of a part, and under it that of an attention, a layer and a head."""
    slot, config = run.slot, run.checkpoint.config
    parts = anatomy(config)
    panel = choices.choose(choices.field(slot, "panel"), say("Part"), PANELS, bare=True)
    with st.container(horizontal=True, gap="small", key=run.key(ROW)):
        kinds = {kind: KINDS[kind] for kind in parts.kinds}
        kind = choices.choose(choices.field(slot, "kind"), say("Attention"), kinds, otherwise=run.view.kind)
        n_layers = parts.attention(kind).n_layers
        # The run has said what there is not.
        chosen = choices.layer_and_head(slot, say("Layer"), n_layers, config.n_heads)
        if panel == "head" and None in chosen:
            choices.menu(
                choices.field(slot, "aggregate"), say("Together"), AGGREGATES, help=AGGREGATE_HELP, width=116
            )


def scales(slot: Slot) -> None:
    """Draw the choice of a colour scale."""
    choices.switch(choices.field(slot, "log_scale"), say("Log colours"))
    choices.switch(
        choices.field(slot, "own_scale"),
        say("Own scale per head"),
        help=say("Off: colours mean the same in all maps, from weight 0 to 1."),
    )


def pieces(slot: Slot) -> None:
    """Draw the choice of what rows and columns are."""
    choices.switch(
        choices.field(slot, "words"),
        say("Merge to words"),
        help=say(
            "Weights are summed over the pieces of a key word and averaged over those of a query word. Scripts "
            "without spaces keep their pieces."
        ),
    )
    choices.switch(
        choices.field(slot, "hide_special"),
        say("Hide special"),
        help=say(
            "Leaves out the columns of special pieces such as `</s>`, and their rows: in the decoder those that "
            "predict one. What is left is not rescaled."
        ),
    )


def open_head(slot: Slot, kind: Kind, layer: int | None, head: int | None) -> None:
    """Callback: show the map of a head.

    Args:
        slot: Where.
        kind: Which attention.
        layer, head: From 0; None for all together.
    """
    session.replace(slot, kind=kind, layer=layer, head=head, panel="head")
