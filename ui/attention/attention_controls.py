"""The controls of the Attention page: which part, attention, layer and head, and how colours and pieces are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ui.attention.drawn_maps import is_spread_thin
from ui.attention.map_pictures import ATTENTION, KINDS
from ui.attention.one_weight_pictures import opening
from ui.frame.sentence_stepper import Still, encoder_attention
from ui.frame.whatif import for_head
from ui.runs.given_maps import can_roll, has_words
from ui.runs.open_maps import AnyRun, OpenMaps
from ui.runs.open_run import OpenRun
from ui.runs.show import choose_part
from ui.shared import choices
from ui.state import session
from ui.state.view import Aggregate, Slot
from words import say

AGGREGATES: Final[dict[Aggregate, str]] = {
    "mean": say("Mean"),
    "max": say("Largest weight"),
    "rollout": say("Rollout through the layers"),
}
AGGREGATE_HELP: Final = say(
    "What a map of several heads shows. Rollout follows the weights through the layers, up to the chosen one; the "
    "text under the map says how."
)
SCALES: Final = ("log_scale", "own_scale")
PIECES: Final = ("words", "hide_special")


def draw(run: AnyRun) -> None:
    """Draw the row of controls, and under it what can be done with the head that is chosen."""
    _row(run)
    if isinstance(run, OpenRun):
        shown = opening(run.looking) if run.view.panel == "walk" else run.view
        for_head(run, run.view.kind, shown.layer, shown.head)


def _row(run: AnyRun) -> None:
    """Draw one row: the part, which attention, layer and head, and a menu of what is rarely changed."""
    slot = run.slot
    with choices.bar(slot):
        panel = choose_part(ATTENTION, slot)
        kinds = {kind: KINDS[kind] for kind in run.trace.kinds}
        choices.menu(
            choices.field(slot, "kind"), say("Attention"), kinds, otherwise=run.view.kind, bare=True, width=140
        )
        if panel == "walk":
            if isinstance(run, OpenRun):
                _one_head(run)
            return  # that part says itself how its numbers came to be
        n_layers, _ = _sizes(run)
        layer = choices.menu_of_layers(choices.field(slot, "layer"), n_layers)
        head = None if panel == "flow" else _head(run, layer)  # that part shows several, and has its own choice
        if panel != "table":
            _more(run, panel, several=layer is None or head is None)


def _sizes(run: AnyRun) -> tuple[int, int]:
    """How many layers and heads there are to choose from; what there is not is let go, as the run has said."""
    n_layers, n_heads = run.trace.maps(run.view.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    return n_layers, n_heads


def _head(run: AnyRun, layer: int | None) -> int | None:
    kept = choices.field(run.slot, "head", forgets=("heads",))
    return choices.menu_of_heads(kept, _sizes(run)[1], disabled=layer is None)


def _one_head(run: OpenRun) -> None:
    """Draw the choice of one layer and one head; what the page had chosen by itself stays where it is."""
    slot, shown = run.slot, opening(run.looking)
    before = {"layer": shown.layer, "head": shown.head}
    if shown.query is not None:
        before["query"] = shown.query
    layer = choices.Kept(f"{slot}one_layer", shown.layer, partial(_take, slot, before, "layer"))
    head = choices.Kept(f"{slot}one_head", shown.head, partial(_take, slot, before, "head"))
    n_layers, n_heads = _sizes(run)
    choices.menu_of_layers(layer, n_layers, all_together=False)
    choices.menu_of_heads(head, n_heads, all_together=False)


def _take(slot: Slot, before: dict[str, int], name: str, place: int) -> None:
    """Callback: of what is looked at one place changes, and the rest is not the page's own choice any more."""
    session.replace(slot, **before | {name: place})


def _rolls(run: AnyRun) -> bool:
    """Whether weights can be followed through the layers."""
    return can_roll(run.trace, run.view.kind) if isinstance(run, OpenMaps) else run.checkpoint.config.residual


def _more(run: AnyRun, panel: str, *, several: bool) -> None:
    """Draw the menu of how colours and pieces are shown, as far as a part has them."""
    slot, together = run.slot, panel == "head" and several
    ways = _pieces_of(run) if panel != "overview" else ()
    names = (*SCALES * (panel != "flow"), *ways, *["aggregate"] * together)
    if not names:
        return
    with choices.more(slot, *names):
        if together:
            label = say("Several heads as one map")
            rolls = _rolls(run)
            known = {name: said for name, said in AGGREGATES.items() if rolls or name != "rollout"}
            choices.menu(choices.field(slot, "aggregate"), label, known, help=AGGREGATE_HELP if rolls else None)
        if panel != "flow":
            scales(slot, log=panel == "head" and is_spread_thin(run.looking))
        pieces(slot, ways)


def _pieces_of(run: AnyRun) -> tuple[str, ...]:
    """What may be chosen of pieces: given maps need not say where words begin, and which pieces are special."""
    if not isinstance(run, OpenMaps):
        return PIECES
    there = {"words": has_words(run.trace), "hide_special": bool(run.trace.special)}
    return tuple(name for name in PIECES if there[name])


def scales(slot: Slot, *, log: bool = False) -> None:
    """Draw the choice of a colour scale.

    Args:
        slot: Whose view.
        log: Whether colours go by the logarithm where the reader has not said.
    """
    kept = choices.field(slot, "log_scale")
    choices.switch(replace(kept, value=log if kept.value is None else kept.value), say("Logarithmic colours"))
    choices.switch(
        choices.field(slot, "own_scale"),
        say("Strongest colour at each map's largest weight"),
        help=say("Off: colours mean the same in all maps, from weight 0 to 1."),
    )


def pieces(slot: Slot, ways: Sequence[str]) -> None:
    """Draw the choice of what rows and columns are, as far as there is one."""
    if "words" in ways:
        choices.switch(
            choices.field(slot, "words"),
            say("Merge pieces to words"),
            help=say(
                "Weights are summed over the pieces of a key word and averaged over those of a query word. Scripts "
                "without spaces keep their pieces."
            ),
        )
    if "hide_special" in ways:
        choices.switch(
            choices.field(slot, "hide_special"),
            say("Hide special pieces"),
            help=say(
                "Leaves out the columns of special pieces such as `</s>`, and their rows: in the decoder those that "
                "predict one. What is left is not rescaled."
            ),
        )


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the encoder, and what holds for the whole run."""
    if run.view.kind == "encoder":
        return encoder_attention(run)
    return Still() if run.view.panel == "table" else None
