"""A session speaks the language of its address, the one chosen, the browser's, or English."""

import threading

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.state import language
from transformer.i18n import catalogue


def page():
    import streamlit as st

    from glassformer.state import language

    st.text(language.begin())
    st.text(language.current())
    st.text(language.tag())
    st.text(str(language.in_address()))
    if st.session_state.get("choose"):
        st.button("zh", on_click=language.choose, args=("zh",))
    st.selectbox("one", ["a", "b"], key="one")


@pytest.fixture(autouse=True)
def chinese(monkeypatch):
    monkeypatch.setattr(catalogue, "languages", lambda: ("en", "zh"))


def texts(test):
    assert not test.exception, test.exception
    return [text.value for text in test.text]


def opened(*, lang=None, locale=None):
    test = AppTest.from_function(page)
    if lang:
        test.query_params["lang"] = lang
    if locale:
        test.context = {"locale": locale}
    return test.run()


def test_outside_a_session_it_is_english():
    found = []
    thread = threading.Thread(target=lambda: found.append(language.current()))
    thread.start()
    thread.join()
    assert found == [language.current()] == ["en"]


@pytest.mark.parametrize(
    ("lang", "locale", "said"),
    [
        ("zh-Hans-CN", "en-US", ["zh", "zh", "zh-CN", "{'lang': 'zh-Hans-CN'}"]),
        (None, "zh-CN", ["zh", "zh", "zh-CN", "{}"]),
        *((odd, "tlh", ["en", "en", "en", "{}"]) for odd in (None, "", "tlh", "<script>")),
    ],
)
def test_the_address_decides_then_the_browser_else_it_is_english(lang, locale, said):
    assert texts(opened(lang=lang, locale=locale)) == said


def test_a_language_that_is_chosen_stays_and_so_does_what_widgets_say():
    test = opened()
    test.selectbox(key="one").set_value("b")
    test.session_state["choose"] = True
    test.run()
    test.button[0].click().run()
    assert texts(test) == ["zh", "zh", "zh-CN", "{'lang': 'zh'}"]
    assert dict(test.query_params) == {}  # the browser writes it in place
    test.query_params["lang"] = "zh"
    assert texts(test.run())[0] == "zh"
    test.query_params.clear()  # as by another page: the session remembers
    assert texts(test.run())[0] == "zh"
    test.query_params["lang"] = "en"
    assert texts(test.run())[0] == "en"
    assert test.selectbox(key="one").value == "b"
