"""A class follows its teacher everywhere, votes without seeing what is not shown yet, and outlives its server."""

import http.client
import json
import re
import time

import numpy as np
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Error, expect

from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, turn_to
from tests.browser.idle import last_events, wait_for_idle
from tests.browser.story import expect_address
from tests.browser.test_slow_network import slow_down
from tools.serve import HOST

BAR = ".gf-room-said"
PANEL = ".st-key-lesson_panel"
MARKED = "chart => chart.layout.yaxis.ticktext.filter(label => label.includes('✓')).length"
DRAWN = "chart => chart._fullData.map(bars => [...bars.x])"
FEW = "1 vote. A chart of the choices appears once there are 5 votes."  # too few to say what was chosen
LEFT = re.compile(r"Vote: (1:00|0:\d\d)")
FOLLOWS, AWAY = "your page follows the teacher", "you are looking around by yourself"


def post(port, path, said):
    """What a browser would post; its answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    headers = {"Content-Type": "application/json", "Origin": f"http://{HOST}:{port}"}
    connection.request("POST", path, body=json.dumps(said), headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, json.loads(body or b"{}")


def others_vote(port, code, *, round_, choices):
    """Votes of students who have no browser."""
    for choice in choices:
        token = post(port, f"/class/{code}/join", {})[1]["token"]
        said = {"token": token, "round": round_, "choice": choice}
        assert post(port, f"/class/{code}/vote", said)[0] == 204


def parameters(page):
    return dict(re.findall(r"[?&](\w+)=([^&]*)", page.url))


def opened(new_page, server):
    """A teacher who has opened a room, and its code."""
    teacher = new_page(visitor="teacher")
    open_page(teacher, f"{server.url}/room")
    teacher.get_by_role("button", name="Open a room").click()
    expect(teacher.locator(BAR)).to_contain_text("0 students")
    return teacher, parameters(teacher)["room"]


def students_of(new_page, server, teacher, code, *visitors):
    """Students with these options, once their teacher has them."""
    pages = [new_page(**options) for options in visitors]
    for page in pages:
        page.goto(f"{server.url}/?room={code.lower()}")
    expect(teacher.locator(BAR)).to_contain_text(re.compile(rf"\b{len(pages)} student"))
    return pages


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


def runs(page):
    """How often a page has been drawn since it was opened."""
    return sum("run ended" in line for line in last_events(page, 10_000))


def unfold(panel):
    """On a phone the question is one line."""
    line = panel.locator(".gf-asked:not([open]) summary")
    if line.is_visible():
        line.click()


def vote(student, choice):
    panel = student.locator(PANEL)
    unfold(panel)
    panel.get_by_role("radiogroup").locator("label").nth(choice).click()
    panel.get_by_role("button", name="Answer").click()
    wait_for_idle(student)
    expect(student.locator(BAR + " + span")).to_have_text("Your vote is in.")


def test_a_class_follows_and_votes_and_sees_nothing_before_it_is_shown(server, new_page, tmp_path):
    teacher, code = opened(new_page, server)
    student = new_page(visitor="first")
    open_page(student, f"{server.url}/room")
    student.get_by_role("textbox", name="Room code").fill(f"{code[:3].lower()} {code[3:]}")
    student.get_by_role("textbox", name="Room code").press("Enter")
    expect(teacher.locator(BAR)).to_contain_text("1 student")
    a_vote_asked_aloud_needs_one_click(teacher, student)
    who_looks_away_stays_and_who_comes_back_is_with_the_teacher(teacher, student, code)
    who_comes_late_by_any_address_is_with_the_teacher_too(teacher, student, code, server, new_page)
    wall = new_page(visitor="wall", color_scheme="dark", viewport={"width": 1920, "height": 1080})
    the_wall_shows_the_way_to_a_phone(wall, server, code, tmp_path)
    turn_to(teacher, f"{server.url}/step?model=zh-en&lesson=one-piece.1&room={code}")
    few_votes_hide_who_chose_what(teacher, student, wall)
    many_votes_are_seen_when_they_are_shown_and_the_answer_after_them(teacher, student, wall, server, code)


def a_vote_asked_aloud_needs_one_click(teacher, student):
    expect(student.locator(BAR)).to_contain_text("the teacher has not opened a page yet")
    teacher.get_by_role("button", name="Ask for votes").click()
    student.get_by_role("button", name="Vote for B").click()
    expect(student.locator(BAR + " + span")).to_have_text("Your vote is in.")
    expect(teacher.locator(".gf-room-wall")).to_contain_text("1 of 1 answered")
    teacher.get_by_role("button", name="Show the votes").click()
    expect(teacher.get_by_text(FEW)).to_be_visible()


def who_looks_away_stays_and_who_comes_back_is_with_the_teacher(teacher, student, code):
    menu_link(teacher, "Translate").click()  # from a bare address, which means another model to each
    student.wait_for_url(re.compile(rf"/step\?.*room={code}", re.IGNORECASE))
    wait_for_idle(student)
    expect(student.locator(BAR)).to_contain_text(FOLLOWS)
    wait_for_idle(teacher)
    teacher.keyboard.press("ArrowRight")
    expect(student.locator(".gf-caption")).to_contain_text("Step 2 of")
    student.get_by_role("button", name="Look around by yourself").click()
    expect(student.locator(BAR)).to_contain_text(AWAY)
    teacher.keyboard.press("ArrowRight")
    expect_address(teacher, step="3")
    wait_for_idle(teacher)  # the room knows
    expect(student.locator(".gf-caption")).to_contain_text("Step 2 of")
    student.get_by_role("button", name="Follow the teacher").click()
    expect(student.locator(".gf-caption")).to_contain_text("Step 3 of")
    teacher.reload()  # which leaves them what they are
    wait_for_idle(teacher)
    expect(teacher.locator(BAR)).to_contain_text("1 student")
    assert "secret" not in teacher.url


def who_comes_late_by_any_address_is_with_the_teacher_too(teacher, student, code, server, new_page):
    late = new_page(**CHINESE, viewport=PHONE)
    late.goto(f"{server.url}/masks?room={code}")
    assert "| en-fr | I like coffee. |" in all_arrive(teacher, [student, late], page="step")
    expect(late.locator(".gf-caption")).to_contain_text("3")
    late.close()
    expect(teacher.locator(BAR)).to_contain_text("1 student")


def the_wall_shows_the_way_to_a_phone(wall, server, code, folder):
    open_page(wall, f"{server.url}/projector?room={code}&present=1")
    wall.screenshot(path=folder / "wall.png")
    read = [found.text for found in zxingcpp.read_barcodes(np.asarray(Image.open(folder / "wall.png").convert("L")))]
    assert read == [f"{server.url}/?room={code}"]  # as a phone sees it, in the dark


def few_votes_hide_who_chose_what(teacher, student, wall):
    panel = teacher.locator(PANEL)
    student.set_viewport_size(PHONE)
    student.wait_for_url(re.compile(r"lesson=one-piece\.1"))
    wait_for_idle(student)
    expect(student.locator(PANEL)).to_contain_text("The class votes")
    covered = sum(student.locator(name).bounding_box()["height"] for name in (".st-key-room_bar", PANEL))
    assert covered < 0.2 * PHONE["height"]  # the picture is seen
    expect(student.locator(".st-key-source")).to_be_hidden()  # who follows a class has no box to type into
    vote(student, 0)
    unfold(student.locator(PANEL))
    line, sheet = (student.locator(name).bounding_box() for name in (".st-key-room_bar", PANEL))
    assert sheet["y"] + sheet["height"] <= line["y"] + 1  # the line covers nothing of the sheet
    before = runs(student)
    panel.get_by_role("button", name="Timer").click()
    teacher.get_by_role("button", name="Start").click()
    for page in (wall, student):
        expect(page.locator(".gf-room-timer").first).to_contain_text(LEFT)
    comes_to(student, lambda: runs(student) > before, expected=True)
    wait_for_idle(student)
    expect(student.locator(f"{PANEL} .gf-asked[open]")).to_be_visible()  # what is read is not folded
    student.reload()
    expect(student.locator(".gf-room-timer").first).to_contain_text(LEFT)
    wait_for_idle(student)
    wait_for_idle(teacher)
    panel.get_by_role("button", name="Show the votes").click()
    expect(wall.get_by_text(FEW)).to_be_visible()
    assert wall.locator(".gf-wall-right").count() == 0
    panel.get_by_role("button", name="Vote again").click()


def many_votes_are_seen_when_they_are_shown_and_the_answer_after_them(teacher, student, wall, server, code):
    panel, asked = teacher.locator(PANEL), student.locator(PANEL)
    expect(asked).to_contain_text("The class votes")
    unfold(asked)
    labels = asked.get_by_role("radiogroup").locator("label")
    expect(labels.filter(has_text="nothing")).to_be_visible()  # it comes after what stands above it
    offered = labels.all_text_contents()
    own = next(place for place, label in enumerate(offered) if "nothing" in label)
    others = int(own == 0)
    others_vote(server.port, code, round_=3, choices=[others] * 5)
    vote(student, own)
    expect(asked).to_contain_text("You voted for “nothing”")
    expect(asked).not_to_contain_text("You predicted")
    expect(wall.locator(".gf-room-wall")).to_contain_text("6 of 6 answered")
    assert wall.locator(".js-plotly-plot").count() == 0
    panel.get_by_role("button", name="Show the votes").click()
    expect(student.locator(".st-key-room_votes")).to_be_attached()
    unfold(asked)  # folded anew, as there is something else to see
    for page in (wall, student, teacher):
        expect(page.locator(".st-key-room_votes, .st-key-wall_votes").locator(".main-svg").first).to_be_visible()
    votes = [{own: 1, others: 5}.get(place, 0) for place in range(len(offered))]
    comes_to(wall, lambda: wall.locator(".js-plotly-plot").evaluate(DRAWN), [votes])
    expect(asked).not_to_contain_text("You predicted")
    wait_for_idle(teacher)
    panel.get_by_role("button", name="Show the answer").click()
    expect(panel.get_by_role("button", name="Vote again")).to_have_count(0)
    expect(asked).to_contain_text("You predicted “nothing”")
    comes_to(wall, lambda: wall.locator(".js-plotly-plot").evaluate(MARKED), 1)  # which hears of it by itself
    unfold(asked)
    for way in ("Next", "Back to the step"):  # on the phone, above the line of the room
        asked.get_by_role("link", name=way, exact=True).click(trial=True)


CHINESE = {"visitor": "chinese", "locale": "zh-CN"}


STUDENTS = (
    {"visitor": "first"},
    CHINESE,
    {"visitor": "telephone", "locale": "zh-CN", "viewport": PHONE},
    {"visitor": "german", "locale": "de-DE"},
    {"visitor": "slow", "viewport": PHONE},
)
LESSONS = ("one-piece.1", "masks.1")
WALK = (
    "Positions", "Masks", "one-piece.1", "way", "back", "Attention", "paste step", "back", "Inside",
    "reload", "paste positions", "step", "What if", "back", "masks.1", "How tokens are chosen", "paste attention",
    "reload", "back", "Positions",
)  # fmt: skip


@pytest.mark.deep
def test_five_students_stay_with_their_teacher_for_twenty_moves(new_page, server):
    teacher, code = opened(new_page, server)
    students = students_of(new_page, server, teacher, code, *STUDENTS)
    menu_link(teacher, "Translate").click()
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
                menu_link(teacher, move).click()
            wait_for_idle(teacher)
            expect(teacher.locator(BAR)).to_contain_text("5 students")
            all_arrive(teacher, students, page=teacher.url.partition("?")[0].rpartition("/")[2])
