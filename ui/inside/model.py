"""The part "The model" of the Inside page: the diagram of the loaded model, its shapes, and what it costs."""

from __future__ import annotations

from dataclasses import replace

import charts
from charts.diagram import HOW_TO_READ, HOW_TO_READ_ALONE
from transformer.model.anatomy import Anatomy, anatomy
from ui.components.plotly.view import Click
from ui.inside import costs, shapes
from ui.inside.blocks import blocks_of, each_layer, few_layers, one_layer, sized, stacks
from ui.inside.destinations import destination
from ui.inside.features import in_words
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.link import write_link
from ui.state.view import Slot
from words import say, say_n

DIAGRAM = "model_diagram"
PLACE = "model_place"
OPEN = "model_open"
LEAVING = "model_leaving"


def draw(run: OpenRun) -> None:
    """Draw it."""
    page = st.session_state.pop(run.key(LEAVING), None)
    if page is not None:
        # An empty address would become a step of the browser's history that means the defaults when gone back to.
        st.switch_page(page, query_params=write_link(replace(run.link, view=run.view)))
    st.markdown(drawing.plain(in_words(run.checkpoint.config)))
    _diagram(run)
    shapes.draw(run)
    costs.draw(run)


def open_place(slot: Slot, place: str) -> None:
    """Callback: go to the view of a block; another page opens as soon as the script runs.

    Args:
        slot: Where.
        place: The block's place, such as `encoder.0.self_attn`.
    """
    there = destination(place)
    session.replace(slot, **there.fields)
    if there.page is not None:
        st.session_state[f"{slot}{LEAVING}"] = there.page


def _diagram(run: OpenRun) -> None:
    checkpoint, parts = run.checkpoint, anatomy(run.checkpoint.config)
    one = sized(checkpoint.model, n_source=len(run.trace.src_ids), n_target=run.looking.n_rows)
    every = stacks(one, grouping=each_layer)
    known = {block.place: block.name for stack in every for block in blocks_of(stack)}
    drawn = stacks(one, grouping=one_layer if _choose(run, known) else few_layers)
    figure = charts.model_diagram_spec(*drawn, title=say("The loaded model: {name}", name=checkpoint.name))

    slot, key = run.slot, run.key(DIAGRAM)

    def place_of(click: Click) -> str | None:
        return str(click.customdata) if click.customdata in known else None

    drawing.chart(
        figure,
        key=key,
        alt=_in_a_sentence(checkpoint.name, parts),
        how_to_read=HOW_TO_READ if len(drawn) > 1 else HOW_TO_READ_ALONE,
        on_click=on_click(key, place_of, lambda place: open_place(slot, place)),
    )


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


def _choose(run: OpenRun, known: dict[str, str]) -> bool:
    """Draw the menu of all blocks, for the keyboard; returns whether equal layers are to be drawn once."""
    slot, key = run.slot, run.key(PLACE)

    def go() -> None:
        place = st.session_state.get(key)
        if place in known:
            open_place(slot, place)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=run.key("model_controls")):
        choices.keep_label(key, known.values())
        st.selectbox(say("Block"), list(known), key=key, format_func=lambda place: known.get(place, ""), width=340)
        st.button(say("Open its view"), key=run.key(OPEN), on_click=go)
        if all(stack.n_layers == 1 for stack in anatomy(run.checkpoint.config).stacks):
            return False
        return choices.switch(choices.field(slot, "fold"), say("Draw equal layers once"))
