"""A page may draw the same panels twice: each slot has its own run, view, keys and step."""

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.state import session
from glassformer.state.view import MAIN, SECOND
from glassformer.step import step_panels, step_pictures
from tests.pages.conftest import ROOT, check
from tests.pages.reading import address, figure, keys_of, payload, view

TWO = ROOT / "tests" / "pages" / "two_slots_app.py"
CHARTS = (step_pictures.candidates.key, step_pictures.cross_map.key, "head_map")


@pytest.fixture
def two(open_page):
    return open_page(TWO, model="reverse", src="glasses", panel="head")


def drawn(test, slot):
    """Everything that the charts and the stepper of a slot got."""
    return {name: payload(test, f"{slot}{name}") for name in (*CHARTS, session.STEPPER)} | {"view": view(test, slot)}


def go_to(test, slot, number):
    data = payload(test, f"{slot}{session.STEPPER}")
    report = {"run_id": data["run"]["run_id"], "step_revision": data["step_revision"], "step": number - 1}
    test.session_state[f"{slot}{session.STEPPER}"] = {"step": report}
    return check(test.run())


def title(test, key):
    return figure(test, key)["layout"]["title"]["text"]


@pytest.mark.parametrize(("slot", "other", "piece"), [(MAIN, SECOND, "a"), (SECOND, MAIN, "le")])
def test_a_step_a_head_and_a_forced_piece_of_one_slot_leave_the_other(two, slot, other, piece):
    before = drawn(two, other)
    test = go_to(two, slot, 3)
    assert view(test, slot).step == 2
    assert "Step 3" in title(test, f"{slot}{step_pictures.candidates.key}")
    check(two.selectbox(key=f"{slot}layer").set_value(1).run())
    check(two.selectbox(key=f"{slot}head").set_value(3).run())
    assert (view(two, slot).layer, view(two, slot).head) == (1, 3)
    for name in (step_pictures.cross_map.key, "head_map"):
        assert "layer 2, head 4" in title(two, f"{slot}{name}")
    check(two.text_input(key=f"{slot}{step_panels.FORCE_CHOICE}").set_value(piece).run())
    assert len(next(radio for radio in two.radio if radio.key == f"{slot}{step_panels.BRANCH_CHOICE}").options) == 2
    assert drawn(two, other) == before


def test_the_address_says_the_main_slot_only(two):
    go_to(two, SECOND, 3)
    assert "step" not in address(two)
    go_to(two, MAIN, 2)
    assert address(two)["step"] == "2"


def test_another_sentence_takes_both_runs_to_their_first_step(two):
    for slot in (MAIN, SECOND):
        go_to(two, slot, 3)
    check(two.text_input(key=session.SOURCE).set_value("noon").run())
    assert [view(two, slot).step for slot in (MAIN, SECOND)] == [0, 0]


# ---------------------------------------------------------------- every part of every page


def twice(page, fields, module=""):
    """Draw a part of a page in both slots; runs as a script."""
    import importlib

    import streamlit as st

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
        st.subheader(slot)
        session.replace(slot, layer=0, head=0, **fields)
        if page == "positions":
            table = importlib.import_module("glassformer.positions.position_controls").draw(checkpoint, slot)
            PAGES[page].entry(table).draw(table, open_run(checkpoint, slot=slot))
            continue
        panels = {"inside": "inside_controls", "masks": "mask_panels"}.get(page, f"{page}_panels")
        importlib.import_module(module or f"glassformer.{page}.{panels}").draw(open_run(checkpoint, slot=slot))


PARTS = (
    *(("attention", {"panel": part}) for part in ("overview", "head", "flow", "walk", "table")),
    *(("inside", {"inside_panel": part}) for part in ("model", "stream", "lens", "ffn", "pieces", "fast")),
    *(("masks", {"masks_panel": part}) for part in ("masks", "one_row", "checks")),
    ("forcing", {}),
    *(("positions", {"positions_panel": part}) for part in ("table", "similarity", "shift", "sentence")),
    ("search", {"search_panel": "tree", "with_beam": True}),
    ("search", {"search_panel": "sampling"}),
)


DAILY = {"attention head", "inside stream", "masks one_row", "forcing ", "positions table", "search tree"}
EACH = [
    pytest.param(page, fields, id=name, marks=[pytest.mark.deep] * (name not in DAILY))
    for page, fields in PARTS
    for name in (f"{page} {next(iter(fields.values()), '')}",)
]


@pytest.mark.parametrize(("page", "fields"), EACH)
def test_every_part_can_be_drawn_twice(page, fields):
    draws_twice(page, fields)


def draws_twice(*args):
    """Check that each picture of a part is in both slots."""
    test = AppTest.from_function(twice, args=args, default_timeout=300)
    test.query_params["model"] = "reverse"
    test.query_params["src"] = test.query_params["ref"] = "abcdef"
    check(test.run())
    keys = keys_of(test)
    first = {key for key in keys if not key.startswith(SECOND)}
    assert first
    assert {f"{SECOND}{key}" for key in first} == keys - first
