"""A control shows the view, writes its field alone, and its labels are no values."""

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.shared.controls import NONE
from glassformer.state import session
from glassformer.state.view import View


def page():
    """A choice of each kind."""
    import streamlit as st

    from glassformer.shared import controls
    from glassformer.state.view import MAIN

    german = st.toggle("Deutsch", key="german")
    kinds = {"encoder": "Kodierer", "cross": "Kreuz"} if german else {"encoder": "Encoder", "cross": "Cross"}
    layers = {None: "Alle" if german else "All", **controls.numbered(3)}
    most = st.session_state.get("most", 9)
    shown = (
        controls.choose(controls.field(MAIN, "kind"), "Attention", kinds),
        controls.menu(controls.field(MAIN, "layer", forgets=("neuron",)), "Layer", layers),
        controls.scale(
            controls.field(MAIN, "tokens"), "Tokens", {4: "vier" if german else "four", 8: "8"}, otherwise=4
        ),
        controls.slider(controls.field(MAIN, "shift"), "Shift", 1, most),
        controls.switch(controls.field(MAIN, "words"), "Words"),
    )
    controls.several(controls.field(MAIN, "dims"), "Dims", range(6), most=3, placeholder="")
    controls.number(controls.field(MAIN, "neuron"), "Neuron", 16, placeholder="", help="", width=100)
    st.session_state["typed"] = controls.typed(controls.field(MAIN, "piece"), "Token", most=20, width=100)
    st.session_state["shown"] = shown


@pytest.fixture
def test():
    return AppTest.from_function(page).run()


def view(test):
    return test.session_state[session.STANDING].view if session.STANDING in test.session_state else View()


def controls_of(test):
    return (*test.button_group, *test.selectbox, *test.select_slider, *test.slider, *test.multiselect)


def written(test):
    """The controls that the last run set."""
    return {element.key for element in controls_of(test) if element.proto.set_value}


def show(test, **fields):
    """Look at something else, as by a link."""
    test.session_state[session.STANDING] = session.SlotState(view=View().but(**fields))
    test.run()


def test_a_typed_text_is_the_view_s(test):
    assert test.session_state["typed"] == ""
    test.text_input(key="piece").set_value(" query  key ").run()
    assert view(test).get("piece") == test.session_state["typed"] == "query  key"
    show(test, piece="other")
    assert test.text_input(key="piece").value == "other"


def test_each_shows_the_view_or_its_own_choice_and_writes_its_field(test):
    assert test.session_state["shown"] == ("cross", None, 4, 1, False)
    assert test.selectbox(key="layer").value == NONE
    assert test.selectbox(key="layer").options == ["All", "1", "2", "3"]
    assert view(test) == View()
    test.button_group(key="kind").set_value("encoder")
    test.selectbox(key="layer").set_value(2)
    test.select_slider(key="tokens").set_value(8)
    test.slider(key="shift").set_value(5)
    test.toggle(key="words").set_value(True)
    test.multiselect(key="dims").set_value([1, 4])
    test.number_input(key="neuron").set_value(16)
    test.run()
    looked_at = View().but(kind="encoder", layer=2, tokens=8, shift=5, words=True, dims=(1, 4))
    assert view(test) == looked_at.but(neuron=15)
    assert test.session_state["shown"] == ("encoder", 2, 8, 5, True)
    assert written(test) == set()  # a control that shows the view is not written
    test.selectbox(key="layer").set_value(NONE).run()
    assert view(test) == looked_at.but(layer=None)  # what the old layer gave a meaning is forgotten


def test_a_control_follows_the_view_and_a_value_that_is_no_option_stays_in_it(test):
    show(test, layer=1, shift=3, kind="encoder")
    assert test.session_state["shown"][:2] == ("encoder", 1)
    assert test.slider(key="shift").value == 3
    assert written(test) >= {"kind", "layer", "shift"}
    show(test, **(odd := {"kind": "decoder", "layer": 9, "tokens": 5, "shift": 20}))
    assert test.session_state["shown"][:4] == ("encoder", None, 4, 9)
    assert view(test) == View().but(**odd)


def test_other_labels_leave_the_value_and_reach_the_browser(test):
    test.button_group(key="kind").set_value("encoder")
    test.selectbox(key="layer").set_value(2).run()
    before = view(test)
    test.toggle(key="german").set_value(True).run()
    assert view(test) == before
    assert test.session_state["shown"][:3] == ("encoder", 2, 4)
    assert written(test) == {"kind", "layer", "tokens"}
    assert test.selectbox(key="layer").options[0] == "Alle"
    assert (test.button_group(key="kind").value, test.selectbox(key="layer").value) == ("encoder", 2)
