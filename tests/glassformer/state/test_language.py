"""A session speaks the language of its address, the one chosen, the browser's, or English."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.testing.v1 import AppTest

from glassformer.state import language
from transformer.i18n import catalogue


def page():
    import streamlit as st

    from glassformer.state import language

    st.text(language.begin())
    st.text(language.current())
    st.text(language.tag_of(language.current()))
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


def spoken(test, **address):
    test.query_params.clear()
    test.query_params.update(address)
    return texts(test.run())[0]


def test_outside_a_session_it_is_english():
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(language.current).result() == language.current() == "en"


@pytest.mark.parametrize(
    ("lang", "locale", "said"),
    [
        ("zh-Hans-CN", "en-US", ["zh", "zh", "zh-CN", "{'lang': 'zh-Hans-CN'}"]),
        (None, "zh-CN", ["zh", "zh", "zh-CN", "{}"]),
        *((odd, "tlh", ["en", "en", "en", "{}"]) for odd in (None, "", "tlh", "<script>")),
    ],
)
def test_the_address_decides_then_the_browser_else_it_is_english(lang, locale, said):
    test = AppTest.from_function(page)
    test.query_params.update({"lang": lang} if lang else {})
    test.context = {"locale": locale}
    assert texts(test.run()) == said


def test_a_language_that_is_chosen_stays_and_so_does_what_widgets_say():
    test = AppTest.from_function(page).run()
    test.selectbox(key="one").set_value("b")
    test.session_state["choose"] = True
    test.run()
    test.button[0].click().run()
    assert texts(test) == ["zh", "zh", "zh-CN", "{'lang': 'zh'}"]
    assert dict(test.query_params) == {}  # the browser writes it in place
    assert spoken(test, lang="zh") == "zh"
    assert spoken(test) == "zh"  # as by another page: the session remembers
    assert spoken(test, lang="en") == "en"
    assert test.selectbox(key="one").value == "b"
