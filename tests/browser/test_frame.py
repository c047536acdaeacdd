"""The fixtures themselves: a fixture that lets faults pass would make every other browser test worthless."""

import pytest
from playwright.sync_api import expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.helpers import GROUND, comes_to, open_page, screenshot, turn_to, wait_for_idle
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


@pytest.fixture(scope="module")
def small_app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.py").write_text(APP, encoding="utf-8")
    with serve(folder / "small.py", log=folder / "app.log") as running:
        yield running


def test_idle_means_that_the_run_has_ended(small_app, page):
    open_page(page, small_app.url)
    page.get_by_role("button", name="slow").click()
    wait_for_idle(page)
    assert page.get_by_text("slept").is_visible()  # at once: this is what is promised


def test_idle_is_not_reported_before_a_rerun_has_begun(small_app, page):
    open_page(page, small_app.url)
    slider = page.get_by_role("slider")
    for expected in range(4, 9):
        slider.press("ArrowRight")
        wait_for_idle(page)
        assert page.get_by_text(f"number is {expected}", exact=True).is_visible()


def test_messages_have_the_numbers_that_streamlit_gives_them(small_app, page):
    assert BackMsg.DESCRIPTOR.fields_by_name["rerun_script"].number == RERUN_SCRIPT
    assert ForwardMsg.DESCRIPTOR.fields_by_name["new_session"].number == NEW_SESSION
    assert ForwardMsg.DESCRIPTOR.fields_by_name["script_finished"].number == SCRIPT_FINISHED
    open_page(page, small_app.url)
    page.get_by_role("button", name="slow").click()  # it sleeps, and its page asks for nothing else meanwhile
    page.wait_for_function("() => window.__glassformerRuns.running", polling=20)
    wait_for_idle(page)
    assert page.evaluate("window.__glassformerRuns") == {"asked": None, "running": False}
    told = [line.split(" ", 1)[1] for line in last_events(page, 4)]
    assert (told[0].split()[0], told[1:]) == ("pointerdown", ["run asked", "run began", "run ended"])
    expect(page.get_by_text("slept")).to_be_visible()


def test_a_tab_that_turns_to_an_address_shows_what_loading_it_shows(server, new_page):
    loaded, turned = new_page(), new_page(fresh=True)
    there = f"{server.url}/masks?model=reverse&src=abc&mask=decoder&query=2&lang=en"
    open_page(loaded, there)
    open_page(turned, f"{server.url}/step?model=en-fr&src=I+like+tea.&step=2&lang=zh")
    entries = turned.evaluate("history.length")
    turn_to(turned, there)

    def shown(page):
        parts = [page.get_by_test_id(part).inner_text() for part in ("stMain", "stSidebarUserContent")]
        return page.url, *parts, page.locator(".gf-chart .gtitle").all_text_contents()

    expect(loaded.locator(".gf-chart .main-svg").nth(1)).to_be_visible()
    comes_to(turned, lambda: shown(turned), shown(loaded))
    assert turned.evaluate("history.length") == entries + 1


def test_screenshots_are_saved(small_app, page, tmp_path):
    open_page(page, small_app.url)
    saved = screenshot(page, "frame: a small app", whole=True, folder=str(tmp_path))
    assert saved is not None
    assert saved.name == "frame-a-small-app.png"
    assert saved.read_bytes().startswith(b"\x89PNG")


def test_errors_reach_the_log_and_not_the_browser(small_app, page):
    open_page(page, f"{small_app.url}/?fail=1")
    assert "a secret path" in small_app.log_text()
    assert "a secret path" not in page.content()


def test_paper_in_light_and_ink_in_dark(small_app, new_page):
    for scheme, colour in GROUND.items():
        page = new_page(color_scheme=scheme)
        open_page(page, small_app.url)
        app = page.get_by_test_id("stApp")
        assert app.evaluate("node => getComputedStyle(node).backgroundColor") == colour
        heading = page.get_by_role("heading", name="A small app")
        assert "Source Serif" in heading.evaluate("node => getComputedStyle(node).fontFamily")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("setTimeout(() => { throw new Error('boom') })", "uncaught in the page: boom"),
        ("fetch('https://example.org/x').catch(() => 0)", "another machine for https://example.org/x"),
    ],
)
def test_a_fault_in_the_page_is_reported(small_app, new_page, faults, script, complaint):
    page = new_page()
    open_page(page, small_app.url)
    page.evaluate(f"() => {{ {script}; }}")
    comes_to(page, lambda: complaint in "\n".join(faults), expected=True)
    faults.clear()  # they were wanted
