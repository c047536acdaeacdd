"""Sentences are in the session's language, also after a change of it, and all else passes as it is."""

from functools import partial

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from glassformer.state import language


def run(script, language="qps"):
    test = AppTest.from_function(script)
    if language:
        test.query_params["lang"] = language
    test.run()
    assert not test.exception, test.exception
    return test


def choices():
    from glassformer.shared.i18n import st
    from transformer.i18n import say

    names = {"mean": say("Mean"), "max": say("Largest")}
    st.selectbox(say("Take"), list(names), format_func=names.__getitem__, key="one")
    st.radio(say("Take"), ["mean", "max"], format_func=lambda name: names[name], key="two")
    st.segmented_control(say("Take"), [1, 2], key="three")
    st.selectbox(say("Take"), [say("Sentence"), "data"], key="four")
    st.text_input(say("Type"), value="mine", key="typed", placeholder=say("Here"))
    st.button(say("Go"), key="go", on_click=lambda text: st.session_state.__setitem__("heard", text), args=(say("A"),))


def test_a_choice_shows_a_translation_and_its_value_stays():
    test = run(choices)
    assert test.selectbox(key="one").options == ["⟦Meeaan⟧", "⟦Laargeest⟧"]
    assert test.selectbox(key="one").value == "mean"
    assert test.radio(key="two").options == ["⟦Meeaan⟧", "⟦Laargeest⟧"]
    assert test.selectbox(key="four").options == ["⟦Seenteencee⟧", "data"]
    assert test.text_input(key="typed").value == "mine"
    assert test.text_input(key="typed").placeholder == "⟦Heeree⟧"
    test.selectbox(key="one").set_value("max").run()
    assert test.session_state["one"] == "max"
    test.button(key="go").click().run()
    assert test.session_state["heard"] == "A"


def tables():
    from glassformer.shared.i18n import st, table
    from transformer.i18n import say

    st.dataframe({"chrF": [1.5, None]})
    st.container().dataframe({"chrF": [None, None]})
    st.code("a long line")
    st.code("a table of letters", wrap_lines=False)
    made = [table({say("Name"): [say("Weights"), "plain"], say("Count"): [3, 4]}) for _ in range(2)]
    st.session_state["same"] = made[0] is made[1]
    st.dataframe(made[0])


def test_a_missing_number_is_a_dash_code_does_not_slide_and_equal_tables_are_packed_once():
    test = run(tables)
    assert [one.proto.placeholder for one in test.dataframe] == ["–"] * 3
    assert [one.proto.wrap_lines for one in test.code] == [True, False]
    assert test.dataframe[2].value["⟦Naamee⟧"].tolist() == ["⟦Weeiights⟧", "plain"]
    assert test.session_state["same"]


def main_and_fragment():
    import streamlit

    from glassformer.shared.i18n import st
    from glassformer.state import language
    from transformer.i18n import say

    streamlit.session_state["main"] = streamlit.session_state.get("main", 0) + 1
    language.begin()

    @st.fragment
    def part():
        st.toggle(say("Words"), key="words")
        st.caption(say("Inside"))

    part()


def test_a_fragment_that_runs_alone_reads_the_language_of_the_session(monkeypatch):
    """As in a browser, where a click inside one runs it without `main.py`."""
    test = run(main_and_fragment)
    (fragment,) = test._fragment_storage._fragments
    alone = partial(RerunData, fragment_id_queue=[fragment])
    monkeypatch.setattr(local_script_runner, "RerunData", alone)
    test.toggle(key="words").set_value(True).run()
    assert not test.exception
    assert test.session_state["main"] == 1
    assert [caption.value for caption in test.caption] == ["⟦Iinsiidee⟧"]


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
    sent = speak(test, "en")
    for widget in sent.widgets:
        if widget.id.endswith("bare"):
            widget.string_value = "<script>"  # what no language calls so
    test._run(sent)
    assert chosen(test) == FIRST


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
