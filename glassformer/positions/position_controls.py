"""Controls of the Positions page: part, side, dimensions, pair, layers; notes on models with other tables or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from glassformer.positions import MAX_DIMS, PositionsLook, PositionsPanel
from glassformer.positions.positions_page import (
    DEFAULT_COUNT,
    PAGE,
    PositionScene,
    PositionTable,
    layers_said,
    most_shift,
    open_shown,
    open_table,
    spread,
)
from glassformer.runs import loading
from glassformer.runs.map_axes import SIDE_OF, SIDES
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import MAIN, Slot
from transformer.analysis import positions as study
from transformer.analysis.positions import Turning
from transformer.i18n import joined, say, say_n
from transformer.i18n.sentence import short
from transformer.model.anatomy import Anatomy, anatomy
from transformer.model.attention_positions import reached
from transformer.model.config import ModelConfig
from transformer.model.position_kinds import Adds
from transformer.runs.interventions.targets import ANY_STACK

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def instead_of_a_table(config: ModelConfig) -> str:
    """What a model has that adds no positions to its embeddings."""
    if config.placing.of:
        own = config.placing.of(config)
        return joined(" ", [own, *_buckets(config)]) if config.positions == "relative" else own
    if anatomy(config).writes:
        return say(
            "This model has no positional encoding: its decoder knows the order of its tokens only through the "
            "causal mask."
        )
    return say("This model has no positional encoding: it does not see the order of its tokens.")


def _buckets(config: ModelConfig) -> Iterator[str]:
    """How many buckets each stack uses, and where its last one begins."""
    for stack in anatomy(config).stacks:
        n, first, last = reached(config.of(stack.name), anatomy(config).attention(stack.name).causal)
        if first == last:
            yield say("{stack}: {n} buckets are used.", stack=ANY_STACK[stack.name], n=n)
        else:
            yield say("{stack}: {n} buckets are used; distances of {first} tokens or more share the last on their "
                      "side.", stack=ANY_STACK[stack.name], n=n, first=first)  # fmt: skip


def about_layout(config: ModelConfig) -> str:
    """How a table of sinusoids that the model has otherwise than the paper is drawn; "" for all others."""
    if config.positions != "sinusoidal" or config.sinusoid_layout == "interleaved":
        return ""
    halves = say(
        "In this model, all sines come before all cosines. On this page, they alternate as in the paper, so the "
        "numbers can be compared with the formula; dimensions are numbered in that order."
    )
    if config.sinusoid_layout == "halves":
        return halves
    slow = say(
        "This model's wavelengths differ slightly from the formula's: the shortest is 2π and the longest 10000 · 2π."
    )
    if config.sinusoid_layout == "tensor2tensor":
        return joined(" ", [halves, slow])
    first = say("As in fairseq, the first row of its table belongs to position p = {first}.", first=config.fill_id + 1)
    return joined(" ", [halves, slow, first])


PARTS: dict[Adds, tuple[PositionsPanel, ...]] = {  # by what positions add
    "table": ("table", "similarity", "shift", "sentence"),
    "turn": ("rotations", "pair", "distance", "sentence"),
    "bias": ("distance", "sentence"),
}
_CROSS = say(
    "Cross-attention does not use positions: a query's position in one text says nothing about a key's position in "
    "another."
)
MEASURES = {False: say("Dot product"), True: say("Cosine")}
COUNT, LAYERS = "positions_count", "positions_layers"
COUNTS = (16, 32, 64, 128, 256, 512)


def draw(checkpoint: Checkpoint, slot: Slot = MAIN) -> PositionTable | PositionScene | None:
    """Draw the controls of the page and of its chosen part, and return what is to be drawn; errors as of `open_table`.

    Positions inside attention have their own parts. A model without positions gets a sentence that says so.
    """
    config, parts = checkpoint.config, anatomy(checkpoint.config)
    if config.placing.adds == "nothing":
        st.info(instead_of_a_table(config))
        return None
    titles, of_table = _titles(config), config.placing.adds == "table"
    _settle(checkpoint, slot, titles)
    with controls.bar(slot):
        panel = controls.choose(controls.field(slot, "positions_panel"), say("Part"), titles, bare=True)
        if (panel == "sentence" or not of_table) and len(parts.stacks) > 1:
            choose_side(parts, slot)
        if not of_table and panel != "sentence":  # that part has a choice of layers of its own
            _choose_layers(open_shown(checkpoint, session.view(slot), slot), slot)
        if panel == "table" or (not of_table and panel != "sentence"):
            choose_count(config.max_len, slot)
        if panel == "similarity":
            controls.choose(controls.field(slot, "cosine"), say("Measure"), MEASURES, bare=True)
    if of_table:
        return open_table(checkpoint, session.view(slot), slot, loading)
    drawing.explain(*map(drawing.plain, [instead_of_a_table(config), *[_CROSS] * ("cross" in parts.kinds)]))
    return open_shown(checkpoint, session.view(slot).but(positions_panel=panel), slot)


def _titles(config: ModelConfig) -> dict[PositionsPanel, str]:
    adds, there = config.placing.adds, PAGE.listed()
    titles: dict[PositionsPanel, str] = {name: there[name].title for name in PARTS[adds]}
    if adds == "bias":
        titles["distance"] = say("Bias by distance")
    return titles


def choose_side(parts: Anatomy, slot: Slot) -> None:
    """Draw the choice of a side."""
    sides = {SIDE_OF[stack.name]: SIDES[SIDE_OF[stack.name]] for stack in parts.stacks}
    controls.choose(controls.field(slot, "side"), say("Side"), sides, bare=True)


def choose_count(max_len: int, slot: Slot) -> None:
    """Draw the choice of how many positions are drawn."""
    options = [count for count in COUNTS if count < max_len]
    options += [max_len] if max_len <= COUNTS[-1] else []
    own = max((n for n in options if n <= DEFAULT_COUNT), default=max_len)
    kept = controls.field(slot, "drawn", key=COUNT)
    if kept.value not in options:
        session.replace(slot, drawn=None)
    if len(options) > 1:
        counts = {count: say("{n} positions", n=count) for count in options}
        controls.menu(kept, say("Positions drawn"), counts, otherwise=own, bare=True, width=136)


def choose_dims(table: PositionTable) -> None:
    """Draw the choice of dimensions whose curves are shown."""
    kept, own = controls.field(table.slot, "dims"), joined(", ", map(str, spread(table.d_model)))
    placeholder = say("Default: {dimensions}; or choose your own", dimensions=own)
    label = say("Dimensions drawn as curves")
    controls.several(kept, label, range(table.d_model), most=MAX_DIMS, placeholder=placeholder)


def choose_pair(table: PositionTable) -> None:
    """Draw the choice of the pair of dimensions."""
    slot, pairs = table.slot, [(2 * pair, 2 * pair + 1) for pair in range(table.d_model // 2)]
    names: list[str] = [say("{sine} and {cosine}", sine=sine, cosine=cosine) for sine, cosine in pairs]
    if table.follows:
        names = [
            say("{sine} and {cosine}: one turn in {length} positions", sine=sine, cosine=cosine, length=short(length))
            for (sine, cosine), length in zip(pairs, study.wavelengths(table.d_model), strict=False)
        ]
    kept = controls.ControlBinding(f"{slot}positions_pair", table.pair, lambda n: session.replace(slot, dims=pairs[n]))
    controls.menu(kept, say("Pair of dimensions"), dict(enumerate(names)))


def _settle(checkpoint: Checkpoint, slot: Slot, titles: Mapping[PositionsPanel, str]) -> None:
    """Move what a link or another checkpoint left behind into what this model has."""
    look, d_model, own = session.view(slot).of(PositionsLook), checkpoint.config.d_model, PositionsLook.positions_panel
    name, panel, most = checkpoint.name, look.positions_panel, max(1, most_shift(checkpoint.config.max_len))
    if panel not in titles and panel != own:  # the page's own choice needs no word
        said = say(
            "This model's positions have no part “{part}”, so the first part of the page is shown instead.",
            part=PAGE.listed()[panel].title,
        )
        session.add_note(said, slot)
        session.replace(slot, positions_panel=own)
    if checkpoint.config.placing.adds != "table":
        return
    if any(dim >= d_model for dim in look.dims):
        said = say(
            "{name} has only the dimensions 0 to {last}, so dimensions from {first} on cannot be shown.",
            first=d_model,
            name=name,
            last=d_model - 1,
        )
        session.add_note(said, slot)
    if look.shift > most:
        said = say(
            "A shift by {shift} is too large: the table of {name} can be shifted by at most {most}.",
            shift=look.shift,
            name=name,
            most=most,
        )
        session.add_note(said, slot)
    session.replace(slot, dims=tuple(dim for dim in look.dims if dim < d_model), shift=min(look.shift, most))


def _choose_layers(shown: PositionScene | None, slot: Slot) -> None:
    """Draw the choice among layers that turn otherwise than each other, where there are such."""
    if shown is None or shown.turning is None or len(shown.turnings) < 2:
        return
    kept = replace(controls.field(slot, "layer", key=LAYERS), value=shown.turning.layers[0])
    options = {one.layers[0]: _name(one) for one in shown.turnings}
    controls.menu(kept, say("Layers"), options, bare=True, width=300)


def _name(turning: Turning) -> str:
    n, numbers = len(turning.layers), layers_said(turning)
    if not turning.n_pairs:
        return say_n("Layer {numbers}: no rotation", "Layers {numbers}: no rotation", n, numbers=numbers)
    if turning.window:
        return say_n("Layer {numbers}: window, base {base:,g}", "Layers {numbers}: window, base {base:,g}", n,
                     numbers=numbers, base=turning.base)  # fmt: skip
    return say_n("Layer {numbers}: base {base:,g}", "Layers {numbers}: base {base:,g}", n, numbers=numbers,
                 base=turning.base)  # fmt: skip


def take_head(slot: Slot, head: int) -> None:
    """Callback: a head is looked at; one of all layers together is nothing, so a layer is, too."""
    layer = session.view(slot).layer
    session.replace(slot, head=head, layer=0 if layer is None else layer)
