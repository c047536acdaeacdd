"""A class walks through the app behind its teacher: each student arrives, with the teacher's model and sentence."""

import re
import time

import pytest
from playwright.sync_api import Error, expect

from tests.browser.helpers import PHONE, menu_link, open_page, turn_to
from tests.browser.idle import wait_for_idle
from tests.browser.test_slow_network import slow_down

# What a page shows, in any language: the page that Python has drawn, the address, the run, the step, a lesson.
SEEN = r"""() => {
  const found = (where) => document.querySelector(where);
  const chosen = found(".st-key-chosen");
  const inputs = Array.from(chosen?.querySelectorAll("input") ?? [], (one) => one.value);
  const step = found(".gf-caption")?.textContent.match(/\d+/g)?.slice(0, 2).join(" of ") ?? "";
  const drawn = found(".st-key-menu a[aria-current=page]")?.getAttribute("href").split("?")[0] ?? "";
  return [drawn, location.pathname.slice(1),
    [chosen?.innerText, ...inputs].join(" ").match(/[(（]([a-z-]+)[)）]/)?.[1] ?? "",
    found(".st-key-source input, .st-key-source textarea")?.value ?? "", step,
    found(".st-key-lesson_panel") !== null].join(" | ");
}"""
ARRIVES_MS = 120_000
# Of Streamlit's answer to a run that had begun before: its page comes back into the address, with the new parameters.
PUT_BACK = """() => {
  const before = location.pathname, put = () => history.pushState({}, "", before + location.search);
  addEventListener("popstate", put, { capture: true, once: true });
}"""
LOST = """() => {
  addEventListener("popstate", (event) => event.stopImmediatePropagation(), { capture: true, once: true });
}"""


def seen(page):
    try:
        return page.evaluate(SEEN)
    except Error:  # it is being loaded
        return None


def all_arrive(teacher, students, *, page):
    """All see what the teacher sees, on the page where the teacher went."""
    wait_for_idle(teacher)
    end = time.monotonic() + ARRIVES_MS / 1000
    while time.monotonic() < end:
        there = seen(teacher)
        late = [seen(student) for student in students if seen(student) != there]
        if there and there.startswith(f"{page} | {page} |") and not late:
            return there
        teacher.wait_for_timeout(250)
    raise AssertionError(f"the teacher sees {there}; students {late}")


def opened(new_page, server, *students):
    """A teacher whose browser speaks English, and students with these options, in one room."""
    teacher = new_page(visitor="teacher")
    open_page(teacher, f"{server.url}/room")
    teacher.get_by_role("button", name="Open a room").click()
    expect(teacher.locator(".gf-room-said")).to_contain_text("0 students")
    code = re.search(r"room=(\w+)", teacher.url)[1]
    pages = [new_page(**options) for options in students]
    for page in pages:
        page.goto(f"{server.url}/?room={code}")
    expect(teacher.locator(".gf-room-said")).to_contain_text(re.compile(rf"{len(pages)} student"))
    return teacher, pages, code


CHINESE = {"visitor": "chinese", "locale": "zh-CN"}


def test_a_class_keeps_its_teachers_model_and_arrives_wherever_it_goes(new_page, server):
    teacher, students, code = opened(new_page, server, {"visitor": "first"}, CHINESE)
    menu_link(teacher, "Step through decoding").click()  # from a bare address, which means another model to each
    there = all_arrive(teacher, students, page="step")
    assert "| en-fr | I like coffee. |" in there

    for fault, page in ((PUT_BACK, "masks"), (LOST, "attention")):
        students[0].evaluate(fault)
        menu_link(teacher, {"masks": "Masks", "attention": "Attention"}[page]).click()
        all_arrive(teacher, students, page=page)

    turn_to(teacher, f"{server.url}/step?lesson=one-piece.1&room={code}")
    assert "| en-fr | I like coffee. |" in all_arrive(teacher, students, page="step")
    teacher.go_back()
    all_arrive(teacher, students, page="attention")

    # An address that the teacher pastes is where the class goes; a reload changes nothing.
    open_page(teacher, f"{server.url}/positions?model=en-fr&src=I+like+tea.&room={code}")
    assert "| en-fr | I like tea. |" in all_arrive(teacher, students, page="positions")
    teacher.reload()
    expect(teacher.locator(".gf-room-said")).to_contain_text("2 students")
    assert "| en-fr | I like tea. |" in all_arrive(teacher, students, page="positions")
    late = new_page(visitor="late", locale="zh-CN", viewport=PHONE)
    late.goto(f"{server.url}/step?room={code}")
    all_arrive(teacher, [*students, late], page="positions")


STUDENTS = (
    {"visitor": "first"},
    CHINESE,
    {"visitor": "telephone", "locale": "zh-CN", "viewport": PHONE},
    {"visitor": "german", "locale": "de-DE"},
    {"visitor": "slow", "viewport": PHONE},
)
LESSONS = ("one-piece.1", "masks.1")
WALK = (
    "Positions", "Masks", "one-piece.1", "way", "back", "Attention", "paste step", "back", "Inside the model",
    "reload", "paste positions", "step", "Compare", "back", "masks.1", "Search", "paste attention", "reload", "back",
    "Positions",
)  # fmt: skip


@pytest.mark.deep
def test_five_students_stay_with_their_teacher_for_twenty_moves(new_page, server):
    teacher, students, code = opened(new_page, server, *STUDENTS)
    menu_link(teacher, "Step through decoding").click()
    all_arrive(teacher, students, page="step")  # and have all scripts
    with slow_down(students[-1]):
        for number, move in enumerate(WALK):
            kind, _, page = move.partition(" ")
            if kind == "paste":
                sentence = ("I+like+tea.", "We+are+here.")[number % 2]
                open_page(teacher, f"{server.url}/{page}?model=en-fr&src={sentence}&room={code}")
            elif kind in LESSONS:
                turn_to(teacher, f"{server.url}/step?lesson={kind}&room={code}")
            elif kind == "reload":
                teacher.reload()
            elif kind == "back":
                teacher.go_back()
            elif kind == "step":
                teacher.keyboard.press("ArrowRight")
            elif kind == "way":
                teacher.locator(".st-key-lesson_panel .gf-ways a").first.click()
            else:
                menu_link(teacher, {"Search": "How pieces are chosen"}.get(move, move)).click()
            wait_for_idle(teacher)
            expect(teacher.locator(".gf-room-said")).to_contain_text("5 students")
            all_arrive(teacher, students, page=teacher.url.partition("?")[0].rpartition("/")[2])
