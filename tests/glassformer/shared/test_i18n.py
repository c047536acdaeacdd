"""The door says every sentence in the session's language, and lets everything else through as it is."""

import json
from functools import partial

from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner


def run(script, language="qps"):
    test = AppTest.from_function(script)
    if language:
        test.query_params["lang"] = language
    test.run()
    assert not test.exception, test.exception
    return test


def labels():
    from glassformer.shared.i18n import st
    from transformer.i18n import joined, say

    st.title(say("Layer"))
    st.markdown(body=say("Head {n}", n=1))
    st.info(joined("  \n", [say("Key"), "data"]))
    st.button(say("Query"), help=say("Help"), key="a_button")
    left, right = st.columns(2)
    left.caption(say("Left"))
    with right:
        st.caption(say("Right"))
    with st.container().expander(say("More")):
        st.text("plain text")
    st.sidebar.metric(say("Loss"), 1.5)
    with st.sidebar:
        st.text(say("Inside"))
    for tab in st.tabs([say("First"), say("Second")]):
        tab.caption(say("Tab"))


def test_everything_is_said_in_the_language():
    test = run(labels)
    assert test.title[0].value == "⟦Laayeer⟧"
    assert test.markdown[0].value == "⟦Heeaad 1⟧"
    assert test.info[0].value == "⟦Keey⟧  \ndata"
    assert (test.button[0].label, test.button[0].help) == ("⟦Quueery⟧", "⟦Heelp⟧")
    assert [caption.value for caption in test.caption] == ["⟦Leeft⟧", "⟦Riight·⟧", "⟦Taab⟧", "⟦Taab⟧"]
    assert test.expander[0].label == "⟦Mooree⟧"
    assert test.text[0].value == "plain text"
    assert test.sidebar.metric[0].label == "⟦Looss⟧"
    assert test.sidebar.text[0].value == "⟦Iinsiidee⟧"
    assert [tab.label for tab in test.tabs] == ["⟦Fiirst·⟧", "⟦Seecoond⟧"]


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
    from glassformer.shared.i18n import frame, st
    from transformer.i18n import say

    table = frame([[say("Weights"), 3]], columns=[say("Name"), say("Count")])
    st.dataframe(table, column_config={say("Count"): st.column_config.NumberColumn(say("How many"), help=say("Many"))})
    st.table(frame({"": [say("Yes")]}, index=[say("Row")]))


def test_a_table_speaks():
    test = run(tables)
    assert list(test.dataframe[0].value.columns) == ["⟦Naamee⟧", "⟦Coouunt⟧"]
    assert test.dataframe[0].value.iloc[0, 0] == "⟦Weeiights⟧"
    column = json.loads(test.dataframe[0].proto.columns)["⟦Coouunt⟧"]
    assert column["label"] == "⟦Hoow maany·⟧"
    assert test.table[0].value.iloc[0, 0] == "⟦Yees⟧"
    assert list(test.table[0].value.index) == ["⟦Roow⟧"]


def test_a_missing_number_is_a_dash_and_code_does_not_slide():
    def gaps():
        from glassformer.shared.i18n import st

        st.dataframe({"chrF": [1.5, None]})
        st.container().dataframe({"chrF": [None, None]})
        st.code("a long line")
        st.code("a table of letters", wrap_lines=False)

    test = run(gaps)
    assert [one.proto.placeholder for one in test.dataframe] == ["–", "–"]
    assert [one.proto.wrap_lines for one in test.code] == [True, False]


def test_equal_tables_are_packed_once():
    def packed():
        from glassformer.shared.i18n import st, table
        from transformer.i18n import say

        made = [table({say("Name"): [say("Weights"), "plain"], say("Count"): [3, 4]}) for _ in range(2)]
        st.session_state["same"] = made[0] is made[1]
        st.dataframe(made[0])

    test = run(packed)
    assert test.dataframe[0].value["⟦Naamee⟧"].tolist() == ["⟦Weeiights⟧", "plain"]
    assert test.session_state["same"]


def main_and_fragment():
    import streamlit

    from glassformer.shared.i18n import st
    from glassformer.state import language
    from transformer.i18n import say

    if "main" not in streamlit.session_state:
        streamlit.session_state["main"] = 0
    streamlit.session_state["main"] += 1
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
