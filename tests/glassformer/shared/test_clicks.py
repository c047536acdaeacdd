"""A press is not forgotten when the run that it was made for is stopped, and counts once."""

import pytest
from streamlit.testing.v1 import AppTest


def page():
    import streamlit
    from streamlit.runtime.scriptrunner import StopException

    from glassformer.shared.drawing import pressed

    state = streamlit.session_state
    begun, done = state.setdefault("begun", 0), state.setdefault("done", 0)
    with pressed(streamlit.button, "Work", key="work", about=state.setdefault("about", "one")) as asked:
        if asked:
            state["begun"] = begun + 1
            if state.get("trouble") == "stopped":
                raise StopException  # the browser wants the next run
            if state.get("trouble") == "error":
                raise ValueError
            state["done"] = done + 1


@pytest.fixture
def test():
    return AppTest.from_function(page).run()


def counts(test):
    return test.session_state["begun"], test.session_state["done"]


def test_work_is_done_once_for_a_press_and_what_was_stopped_is_begun_again(test):
    assert counts(test) == (0, 0)
    assert counts(test.button(key="work").click().run()) == counts(test.run()) == (1, 1)
    test.session_state["trouble"] = "stopped"
    assert counts(test.button(key="work").click().run()) == (2, 1)
    del test.session_state["trouble"]
    assert counts(test.run()) == counts(test.run()) == (3, 2)


@pytest.mark.parametrize("trouble", ["stopped", "error"])
def test_work_that_failed_or_was_stopped_for_something_else_is_not_begun_again(test, trouble):
    test.session_state["trouble"] = trouble
    assert len(test.button(key="work").click().run().exception) == (trouble == "error")
    for about in ("two", "one"):
        test.session_state["about"] = about if trouble == "stopped" else "one"
        assert counts(test.run()) == (1, 0)
