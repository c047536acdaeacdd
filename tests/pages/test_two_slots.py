"""A page may draw the same panels twice: each slot has its own run, view, keys and step."""

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.state import session
from glassformer.state.view import MAIN, SECOND
from glassformer.step import step_panels, step_pictures
from tests.pages.conftest import check
from tests.pages.reading import address, choose, go_to, keys_of, payload, title, view

CHARTS = (step_pictures.candidates.key, step_pictures.cross_map.key, "head_map")
STEPPERS = tuple(f"{slot}{session.STEPPER}" for slot in session.SLOTS)


def drawn_by(script, *args, **parameters):
    test = AppTest.from_function(script, args=args, default_timeout=300)
    test.query_params.update({"model": "reverse", **parameters})
    return check(test.run())


def two_runs():
    """Two runs beside each other: the stepper, the step's panels and one map of each; runs as a script."""
    import streamlit as st

    from glassformer.attention.maps_panel import map_and_cell
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.sentence_stepper import sentence
    from glassformer.frame.source_box import head, source_box
    from glassformer.runs import loading
    from glassformer.runs.open_run import open_run
    from glassformer.state import session
    from glassformer.step import step_panels

    session.begin("two")
    st.session_state.setdefault(f"{session.SLOTS[1]}{session.SOURCE}", "I like coffee.")
    row = head("Two")
    checkpoint = sidebar()
    source_box(checkpoint, row)

    @st.fragment
    def follow():
        for slot, name in zip(session.SLOTS, (checkpoint.name, "en-fr"), strict=True):
            run = open_run(loading.open_checkpoint(loading.usable()[name]), kind="cross", slot=slot)
            sentence(run, compact=True)
            step_panels.parts(run)
            map_and_cell(run)
            run.publish()

    follow()


@pytest.fixture
def two():
    return drawn_by(two_runs, src="glasses", panel="head")


@pytest.mark.parametrize(("slot", "other", "piece"), [(MAIN, SECOND, "a"), (SECOND, MAIN, "le")])
def test_a_step_a_head_and_a_forced_piece_of_one_slot_leave_the_other(two, slot, other, piece):
    def drawn():
        keys = (*CHARTS, session.STEPPER)
        return {name: payload(two, f"{other}{name}") for name in keys} | {"view": view(two, other)}

    before = drawn()
    go_to(two, 3, slot)
    assert view(two, slot).step == 2
    assert "Step 3" in title(two, f"{slot}{step_pictures.candidates.key}")
    choose(two, f"{slot}layer", 1)
    choose(two, f"{slot}head", 3)
    assert (view(two, slot).layer, view(two, slot).head) == (1, 3)
    for name in (step_pictures.cross_map.key, "head_map"):
        assert "layer 2, head 4" in title(two, f"{slot}{name}")
    choose(two, f"{slot}{step_panels.FORCE_CHOICE}", piece)
    assert len(two.radio(key=f"{slot}{step_panels.BRANCH_CHOICE}").options) == 2
    assert drawn() == before


def test_the_address_says_the_main_slot_only_and_another_sentence_takes_both_to_their_first_step(two):
    assert "step" not in address(go_to(two, 3, SECOND))
    assert address(go_to(two, 2, MAIN))["step"] == "2"
    choose(two, session.SOURCE, "noon")
    assert [view(two, slot).step for slot in session.SLOTS] == [0, 0]


# ---------------------------------------------------------------- every part of every page


def twice(page, fields, module=""):
    """Draw a part of a page in both slots; runs as a script."""
    import importlib

    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import head, source_box
    from glassformer.runs.open_run import open_run
    from glassformer.runs.picture import PAGES, declare_all
    from glassformer.state import session

    declare_all()
    session.begin(page)
    checkpoint = sidebar()
    source_box(checkpoint, head("Two"))
    for slot in session.SLOTS:
        session.replace(slot, layer=0, head=0, **fields)
        if page == "positions":
            table = importlib.import_module("glassformer.positions.position_controls").draw(checkpoint, slot)
            PAGES[page].entry(table).draw(table, open_run(checkpoint, slot=slot))
            continue
        panels = {"inside": "inside_controls", "masks": "mask_panels"}.get(page, f"{page}_panels")
        importlib.import_module(module or f"glassformer.{page}.{panels}").draw(open_run(checkpoint, slot=slot))


PANELS = {
    ("attention", "panel"): ("overview", "head", "flow", "walk", "table"),
    ("inside", "inside_panel"): ("model", "stream", "lens", "ffn", "pieces", "fast"),
    ("masks", "masks_panel"): ("masks", "one_row", "checks"),
    ("positions", "positions_panel"): ("table", "similarity", "shift", "sentence"),
    ("search", "search_panel"): ("tree", "sampling"),
}
PARTS = [(page, {panel: part}) for (page, panel), parts in PANELS.items() for part in parts] + [("forcing", {})]
DAILY = {"attention head", "inside stream", "masks one_row", "forcing ", "positions table", "search tree"}
EACH = [
    pytest.param(page, fields, id=name, marks=[pytest.mark.deep] * (name not in DAILY))
    for page, fields in PARTS
    for name in (f"{page} {next(iter(fields.values()), '')}",)
]


@pytest.mark.parametrize(("page", "fields"), EACH)
def test_every_part_can_be_drawn_twice(page, fields):
    draws_twice(page, fields | ({"with_beam": True} if fields.get("search_panel") == "tree" else {}))


def draws_twice(*args):
    """Check that each picture of a part is in both slots."""
    keys = keys_of(drawn_by(twice, *args, src="abcdef", ref="abcdef"))
    first = {key for key in keys if not key.startswith(SECOND)}
    assert first
    assert {f"{SECOND}{key}" for key in first} == keys - first
