"""The part "The model" of the Inside page: the diagram of the loaded model, its shapes, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import charts
from charts.diagram import HOW_TO_READ, HOW_TO_READ_ALONE
from charts.diagram_blocks import Stack
from charts.theme import Spec
from transformer.model.anatomy import Anatomy, anatomy
from ui.inside import costs, shapes
from ui.inside.blocks import Grouping, blocks_of, each_layer, few_layers, one_layer, stacks
from ui.inside.destinations import destination
from ui.inside.features import in_words
from ui.inside.further import not_drawn
from ui.inside.sized import Sized, sized
from ui.runs.open_run import OpenRun, address
from ui.shared import choices, drawing, menu
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import Click
from ui.state.link import Link
from ui.state.view import Slot
from words import joined, say, say_n

DIAGRAM = "model_diagram"
PLACE = "model_place"
OPEN = "model_open"
KEPT = 32  # diagrams: a class that follows its teacher draws the same one a hundred times


def draw(run: OpenRun, row: Any) -> None:
    """Draw it, with its controls in `row`."""
    _diagram(run, row)
    left_out = not_drawn(run.checkpoint.config)
    if left_out:
        st.caption(drawing.plain(joined(" ", left_out)))
    st.markdown(drawing.plain(in_words(run.checkpoint.config)))
    shapes.draw(run)
    costs.draw(run)


def open_place(slot: Slot, place: str) -> None:
    """Callback: go to the view of a block on this page; to those on other pages the browser goes by itself.

    Args:
        slot: Where.
        place: The block's place, such as `encoder.0.self_attn`.
    """
    there = destination(place)
    if there.page is None:
        session.replace(slot, **there.fields)


def _elsewhere(run: OpenRun, place: str) -> Link:
    """What another page shows of a block; a cell is one of another map."""
    fields = {"query": None, "key": None} | destination(place).fields
    return address(run.checkpoint, replace(run.link, view=run.view), **fields)


def _diagram(run: OpenRun, row: Any) -> None:
    checkpoint, parts = run.checkpoint, anatomy(run.checkpoint.config)
    one = sized(checkpoint.model, n_source=len(run.trace.src_ids), n_target=run.looking.n_rows)
    known = {block.place: block.name for stack in _stacks(one, each_layer) for block in blocks_of(stack)}
    grouping = one_layer if _choose(run, known, row) else few_layers
    away = {place: (page, _elsewhere(run, place)) for place in known if (page := destination(place).page)}
    links = dict(zip(away, menu.hrefs(list(away.values())), strict=True))
    figure = charts.with_links(_figure(one, grouping, checkpoint.name), links)
    slot, key = run.slot, run.key(DIAGRAM)

    def place_of(click: Click) -> str | None:
        return str(click.customdata) if click.customdata in known else None

    drawing.chart(
        figure,
        key=key,
        alt=_in_a_sentence(checkpoint.name, parts),
        how_to_read=HOW_TO_READ if len(parts.stacks) > 1 else HOW_TO_READ_ALONE,
        on_click=on_click(key, place_of, lambda place: open_place(slot, place)),
    )


@lru_cache(maxsize=KEPT)
def _stacks(one: Sized, grouping: Grouping) -> tuple[Stack, ...]:
    return stacks(one, grouping=grouping)


@lru_cache(maxsize=KEPT)
def _figure(one: Sized, grouping: Grouping, name: str) -> Spec:
    """The diagram without links, which are a session's own."""
    return charts.model_diagram_spec(*_stacks(one, grouping), title=say("The loaded model: {name}", name=name))


def _in_a_sentence(name: str, parts: Anatomy) -> str:
    """The diagram for people who cannot see it."""
    layers = {stack.name: stack.n_layers for stack in parts.stacks}
    if not parts.reads:
        return say_n("Diagram of the model {name}: a decoder of {n} layer, and no encoder.",
                     "Diagram of the model {name}: a decoder of {n} layers, and no encoder.", layers["decoder"],
                     name=name)  # fmt: skip
    if not parts.writes:
        return say_n("Diagram of the model {name}: an encoder of {n} layer, and no decoder.",
                     "Diagram of the model {name}: an encoder of {n} layers, and no decoder.", layers["encoder"],
                     name=name)  # fmt: skip
    return say(
        "Diagram of the model {name}: an encoder of {n_encoder} layers on the left, a decoder of {n_decoder} on the "
        "right, and the encoder's output going to every cross-attention.",
        name=name, n_encoder=layers["encoder"], n_decoder=layers["decoder"],
    )  # fmt: skip


def _choose(run: OpenRun, known: dict[str, str], row: Any) -> bool:
    """Draw the menu of all blocks, for the keyboard; returns whether equal layers are to be drawn once."""
    slot, key = run.slot, run.key(PLACE)

    def go() -> None:
        place = st.session_state.get(key)
        if place in known:
            open_place(slot, place)

    with row, choices.more(slot, "fold"):
        choices.keep_label(key, known.values())
        place = st.selectbox(say("Block"), list(known), key=key, format_func=lambda place: known.get(place, ""))
        page = destination(place).page
        if page is None:
            st.button(say("Open its view"), key=run.key(OPEN), on_click=go)
        else:
            menu.link(page, say("Open its view"), _elsewhere(run, place))
        if all(stack.n_layers == 1 for stack in anatomy(run.checkpoint.config).stacks):
            return False
        return choices.switch(choices.field(slot, "fold"), say("Draw equal layers once"))
