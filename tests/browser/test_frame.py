"""What browser tests are built on holds: idle means that a run has ended, and a fault in a page fails its test."""

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.helpers import comes_to, open_page, turn_to, wait_for_idle
from tests.browser.idle import NEW_SESSION, RERUN_SCRIPT, SCRIPT_FINISHED, last_events
from tools.serve import serve

APP = """
import time
import streamlit as st

st.title("A small app")
number = st.slider("number", 0, 10, 3)
if st.button("slow"):
    time.sleep(1)
    st.text("slept")
st.text(f"number is {number}")
if "fail" in st.query_params:
    raise ValueError("a secret path")
"""
FAULTS = {
    "setTimeout(() => { throw new Error('boom') })": "uncaught in the page: boom",
    "fetch('https://example.org/x').catch(() => 0)": "another machine for https://example.org/x",
}


@pytest.fixture(scope="module")
def small_app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.py").write_text(APP, encoding="utf-8")
    with serve(folder / "small.py", log=folder / "app.log") as running:
        yield running


def test_idle_means_that_the_run_has_ended_and_never_comes_before_it_and_faults_are_seen(small_app, page, faults):
    assert BackMsg.DESCRIPTOR.fields_by_name["rerun_script"].number == RERUN_SCRIPT
    assert ForwardMsg.DESCRIPTOR.fields_by_name["new_session"].number == NEW_SESSION
    assert ForwardMsg.DESCRIPTOR.fields_by_name["script_finished"].number == SCRIPT_FINISHED
    open_page(page, small_app.url)
    for expected in range(4, 7):
        page.get_by_role("slider").press("ArrowRight")
        wait_for_idle(page)
        assert page.get_by_text(f"number is {expected}", exact=True).is_visible()
    page.get_by_role("button", name="slow").click()  # it sleeps, and its page asks for nothing else meanwhile
    page.wait_for_function("() => window.__glassformerRuns.running", polling=20)
    wait_for_idle(page)
    assert page.get_by_text("slept").is_visible()  # at once: this is what is promised
    assert page.evaluate("window.__glassformerRuns") == {"asked": None, "running": False}
    told = [line.split(" ", 1)[1] for line in last_events(page, 4)]
    assert (told[0].split()[0], told[1:]) == ("pointerdown", ["run asked", "run began", "run ended"])
    faults_reach_the_test_and_errors_the_log_but_never_the_browser(small_app, page, faults)


def faults_reach_the_test_and_errors_the_log_but_never_the_browser(small_app, page, faults):
    open_page(page, f"{small_app.url}/?fail=1")
    assert "a secret path" in small_app.log_text()
    assert "a secret path" not in page.content()
    for script, complaint in FAULTS.items():
        page.evaluate(f"() => {{ {script}; }}")
        comes_to(page, lambda complaint=complaint: complaint in "\n".join(faults), expected=True)
    faults.clear()  # they were wanted


def test_a_tab_that_turns_to_an_address_shows_what_loading_it_shows(server, new_page):
    page = new_page()
    there = f"{server.url}/masks?model=reverse&src=abc&mask=decoder&query=2&lang=en"

    def shown():
        parts = [page.get_by_test_id(part).inner_text() for part in ("stMain", "stSidebarUserContent")]
        return page.url, *parts, page.locator(".gf-chart .gtitle").all_text_contents()

    open_page(page, there)
    expect(page.locator(".gf-chart .main-svg").nth(1)).to_be_visible()
    loaded = shown()
    open_page(page, f"{server.url}/step?model=en-fr&src=I+like+tea.&step=2&lang=zh")
    entries = page.evaluate("history.length")
    turn_to(page, there)
    comes_to(page, shown, loaded)
    assert page.evaluate("history.length") == entries + 1
