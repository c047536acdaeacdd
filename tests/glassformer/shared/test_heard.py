"""A label of the language before is the option that it names, for every choice that is sent as it is shown."""

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.state import language


def page():
    import streamlit

    from glassformer.shared.i18n import st
    from glassformer.state import language
    from transformer.i18n import say

    names = {"source": say("Source"), "target": say("Target"), "none": "–"}
    state = streamlit.session_state
    state.setdefault(language.LANGUAGE, "en")

    def count():
        state["heard"] = state.get("heard", 0) + 1

    options = {"options": list(names), "format_func": names.__getitem__}
    st.radio(say("Attention"), **options, key="radio", on_change=count)
    st.selectbox(say("Attention"), **options, key="selectbox", on_change=count)
    st.multiselect(say("Attention"), **options, key="multiselect", default=["source", "none"], on_change=count)
    st.selectbox(say("Attention"), list(names), format_func=names.__getitem__, key="bare")


FIRST = {"radio": "source", "selectbox": "source", "multiselect": ["source", "none"], "bare": "source"}


@pytest.fixture
def test():
    return AppTest.from_function(page).run()


def speak(test, name):
    """As the choice of a language does it; what the browser had shown until then."""
    sent = test._tree.get_widget_states()
    test.session_state[language.LANGUAGE] = name
    for key in FIRST:
        test.session_state[key] = test.session_state[key]
    test.run()
    return sent


def chosen(test):
    assert not test.exception
    return {key: test.session_state[key] for key in FIRST}


def test_labels_of_the_language_before_change_nothing_and_call_nobody(test):
    for name in ("zh", "en", "zh"):
        test._run(speak(test, name))
        assert chosen(test) == FIRST
        assert "heard" not in test.session_state


def test_what_was_chosen_by_a_label_of_the_language_before_is_chosen(test):
    sent = speak(test, "zh")
    for widget in sent.widgets:
        if widget.WhichOneof("value") == "string_value":
            widget.string_value = "Target"
        else:
            widget.string_array_value.data[:] = ["Target", "–"]
    test._run(sent)
    assert chosen(test) == dict.fromkeys(FIRST, "target") | {"multiselect": ["target", "none"]}
    assert test.session_state["heard"] == 3


def test_what_no_language_calls_so_is_no_option(test):
    sent = speak(test, "zh")
    for widget in sent.widgets:
        if widget.id.endswith("bare"):
            widget.string_value = "<script>"
    test._run(sent)
    assert chosen(test) == FIRST
