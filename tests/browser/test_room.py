"""A teacher and two students, each in a browser of their own: they join, follow, look away, vote, hear of the end."""

import http.client
import json
import re
from contextlib import suppress

import numpy as np
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import TimeoutError, expect

from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, screenshot, turn_to
from tests.browser.idle import wait_for_idle
from tests.extensions.replicas.redis_server import RedisServer
from tools.serve import HOST, serve

BAR = ".gf-room-said"
PANEL = ".st-key-lesson_panel"
DRAWN = "chart => chart._fullData.map(bars => [...bars.x])"
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


@pytest.fixture
def people(new_page, server):
    """A teacher, two students, the code of their room, all on the page about rooms."""
    teacher, *students = [new_page(visitor=name) for name in ("teacher", "first", "second")]
    open_page(teacher, f"{server.url}/room")
    teacher.get_by_role("button", name="Open a room").click()
    expect(teacher.locator(BAR)).to_contain_text("0 students")
    code = parameters(teacher)["room"]
    open_page(students[0], f"{server.url}/?room={code.lower()}")
    open_page(students[1], f"{server.url}/room")
    students[1].get_by_role("textbox", name="Room code").fill(f"{code[:3]} {code[3:]}")
    students[1].get_by_role("textbox", name="Room code").press("Enter")
    expect(teacher.locator(BAR)).to_contain_text("2 students")
    return teacher, *students, code


def test_a_class_votes_aloud_and_follows(people):
    teacher, first, second, code = people
    for student in (first, second):
        expect(student.locator(BAR)).to_contain_text("the teacher has not opened a page yet")
    screenshot(teacher, "room-teacher")
    screenshot(first, "room-student")
    a_vote_asked_aloud_needs_one_click(teacher, first, second)

    # Another page, and a step on it.
    menu_link(teacher, "Step through decoding").click()
    for student in (first, second):
        student.wait_for_url(re.compile(rf"/step\?.*room={code}", re.IGNORECASE))
        wait_for_idle(student)
        expect(student.locator(BAR)).to_contain_text(FOLLOWS)
    wait_for_idle(teacher)
    teacher.keyboard.press("ArrowRight")
    for student in (first, second):
        expect(student.locator(".gf-caption")).to_contain_text("Step 2 of")

    # Looking away, and coming back.
    second.get_by_role("button", name="Look around by yourself").click()
    expect(second.locator(BAR)).to_contain_text(AWAY)
    teacher.keyboard.press("ArrowRight")
    expect(first.locator(".gf-caption")).to_contain_text("Step 3 of")
    expect(second.locator(".gf-caption")).to_contain_text("Step 2 of")
    second.get_by_role("button", name="Follow the teacher").click()
    expect(second.locator(".gf-caption")).to_contain_text("Step 3 of")

    # A student's own way moves nobody; a reload of the teacher's tab leaves the teacher what they are.
    menu_link(first, "Masks").click()
    first.wait_for_url("**/masks?**")
    teacher.reload()
    wait_for_idle(teacher)
    expect(teacher.locator(BAR)).to_contain_text("2 students")
    assert "/step" in teacher.url
    assert "secret" not in teacher.url


def test_a_class_votes_on_lessons_and_sees_nothing_before_it_is_shown(people, server, new_page, tmp_path):
    teacher, first, second, code = people
    wall = new_page(visitor="wall", color_scheme="dark", viewport={"width": 1920, "height": 1080})
    open_page(wall, f"{server.url}/projector?room={code}&present=1")
    screenshot(wall, "room-wall-empty")
    picture = tmp_path / "wall.png"
    wall.screenshot(path=picture)
    read = [found.text for found in zxingcpp.read_barcodes(np.asarray(Image.open(picture).convert("L")))]
    assert read == [f"{server.url}/?room={code}"]  # as a phone sees it, in the dark
    turn_to(teacher, f"{server.url}/step?model=zh-en&lesson=one-piece.1&room={code}")
    expect(teacher.locator(PANEL).get_by_role("button", name="Show the votes")).to_be_visible()
    for student in (first, second):
        student.wait_for_url(re.compile(r"lesson=one-piece\.1"))
        wait_for_idle(student)
        expect(student.locator(PANEL)).to_contain_text("The class votes")
    offered = first.locator(PANEL).get_by_role("radiogroup").locator("label").all_text_contents()
    own = next(place for place, label in enumerate(offered) if "nothing" in label)
    others = int(own == 0)
    others_vote(server.port, code, round_=1, choices=[others] * 5)
    for student in (first, second):
        student.locator(PANEL).get_by_role("radiogroup").get_by_text("nothing").click()
        student.locator(PANEL).get_by_role("button", name="Answer").click()
        expect(student.locator(PANEL)).to_contain_text("You voted for “nothing”")
        expect(student.locator(BAR + " + span")).to_have_text("Your vote is in.")
        expect(student.locator(PANEL)).not_to_contain_text("You predicted")
    expect(wall.locator(".gf-room-wall")).to_contain_text("7 of 7 answered")
    screenshot(first, "room-voted")
    screenshot(wall, "room-wall-asked")
    assert wall.locator(".js-plotly-plot").count() == 0
    teacher.locator(PANEL).get_by_role("button", name="Show the votes").click()
    for page in (wall, first, second, teacher):
        expect(page.locator(".st-key-room_votes, .st-key-wall_votes").locator(".main-svg").first).to_be_visible()
    drawn = wall.locator(".js-plotly-plot").evaluate("chart => chart._fullData.map(bars => [...bars.x])")
    assert drawn == [[{own: 2, others: 5}.get(place, 0) for place in range(len(offered))]]
    expect(first.locator(PANEL)).not_to_contain_text("You predicted")
    screenshot(wall, "room-wall-shown")
    wall.set_viewport_size({"width": 1280, "height": 720})
    wait_for_idle(wall)
    screenshot(wall, "room-wall-shown-small")
    screenshot(teacher, "room-teacher-shown")
    teacher.locator(PANEL).get_by_role("button", name="Show the answer").click()
    for student in (first, second):
        expect(student.locator(PANEL)).to_contain_text("You predicted “nothing”")
    assert wall.locator(".js-plotly-plot").evaluate("chart => chart.layout.yaxis.ticktext.join()").count("✓") == 1
    screenshot(first, "room-answered")
    wait_for_idle(teacher)
    turn_to(teacher, f"{server.url}/masks?model=zh-en&lesson=masks.1&room={code}")
    few_votes_hide_who_chose_what_and_never_the_answer(people, wall)


def few_votes_hide_who_chose_what_and_never_the_answer(people, wall):
    teacher, first, second, code = people
    panel = teacher.locator(PANEL)
    for student in (first, second):
        expect(student.locator(PANEL)).to_contain_text("The class votes")
        expect(student.locator(".gf-pieces").first).to_be_visible()  # what is asked about is not covered
        vote(student, 0)
    panel.get_by_role("button", name="Timer").click()
    teacher.get_by_role("button", name="Start").click()
    for page in (wall, first):
        expect(page.locator(".gf-room-timer").first).to_contain_text("Vote: 0:5")
    first.reload()
    expect(first.locator(".gf-room-timer").first).to_contain_text("Vote: 0:")
    wait_for_idle(teacher)
    panel.get_by_role("button", name="Show the votes").click()
    expect(wall.locator(".gf-wall")).to_contain_text(
        [code, "2 votes. A chart of the choices appears once there are 5 votes."]
    )
    assert wall.locator(".gf-wall-right").count() == 0
    panel.get_by_role("button", name="Show the answer").click()
    expect(wall.locator(".gf-wall-right")).to_contain_text("✓")
    assert wall.locator(".js-plotly-plot").count() == 0
    screenshot(wall, "room-wall-few-answered")


def test_a_link_that_was_cut_short_says_so(tab, server):
    turn_to(tab, f"{server.url}/step?room=KXZ4")
    expect(tab.get_by_text("“KXZ4” in the link is not a room code")).to_be_visible()
    expect(tab.locator(BAR)).to_have_count(0)


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


def test_a_class_votes_again_and_with_sentences_of_their_own(people, server):
    teacher, first, second, code = people
    first.set_viewport_size(PHONE)
    panel = teacher.locator(PANEL)
    turn_to(teacher, f"{server.url}/step?model=zh-en&lesson=one-piece.1&room={code}")
    for student in (first, second):
        expect(student.locator(PANEL)).to_contain_text("The class votes")
    covered = sum(first.locator(name).bounding_box()["height"] for name in (".st-key-room_bar", PANEL))
    assert covered < 0.2 * PHONE["height"]  # the picture is seen
    screenshot(first, "room-phone")
    for student in (first, second):
        vote(student, 0)
    line, sheet = (first.locator(name).bounding_box() for name in (".st-key-room_bar", PANEL))
    assert sheet["y"] + sheet["height"] <= line["y"] + 1  # the line covers nothing of the sheet
    panel.get_by_role("button", name="Show the votes").click()
    expect(panel).to_contain_text("2 votes. A chart of the choices appears once there are 5 votes.")

    # Again: both may vote once more, others' votes are counted beside, and the answer shows what was right.
    panel.get_by_role("button", name="Vote again").click()
    for student in (first, second):
        expect(student.locator(PANEL)).to_contain_text("The class votes")
        vote(student, 1)
    for place in range(5):
        token = post(server.port, f"/class/{code}/join", {})[1]["token"]
        assert post(server.port, f"/class/{code}/vote", {"token": token, "round": 2, "choice": place % 2})[0] == 204
    panel.get_by_role("button", name="Show the votes").click()
    assert panel.locator(".js-plotly-plot").evaluate(DRAWN) == [[3, 4, 0, 0]]  # the first round was too small to show
    wait_for_idle(teacher)
    panel.get_by_role("button", name="Show the answer").click()
    expect(panel.get_by_role("button", name="Vote again")).to_have_count(0)
    expect(first.locator(PANEL)).to_contain_text("the answer is")
    unfold(first.locator(PANEL))
    for way in ("Next", "Back to the step"):  # on the phone, above the line of the room
        first.locator(PANEL).get_by_role("link", name=way, exact=True).click(trial=True)

    votes_on_own_sentences(people, panel, server.port)


def votes_on_own_sentences(people, panel, port):
    """The same question finds other pieces in each sentence, and only how many are right is counted."""
    teacher, first, second, code = people
    wait_for_idle(teacher)
    menu_link(teacher, "A room").click()
    wait_for_idle(teacher)
    teacher.get_by_text("Everybody uses their own sentence").click()
    wait_for_idle(teacher)
    for student, sentence in ((first, "你吃饭了吗？"), (second, "今天天气很好。")):
        student.locator(".st-key-source input").fill(sentence)
        student.keyboard.press("Enter")
        wait_for_idle(student)
    menu_link(teacher, "Step through decoding").click()
    for student in (first, second):
        expect(student.locator(PANEL)).to_contain_text("The class votes")
    vote(first, 0)
    right = second.locator(PANEL).get_by_role("radiogroup").locator("label").filter(has_text="<s>")
    right.click()
    second.locator(PANEL).get_by_role("button", name="Answer").click()
    expect(teacher.locator(".gf-room-wall")).to_contain_text("2 of 2 answered")
    for place in range(3):
        token = post(port, f"/class/{code}/join", {})[1]["token"]
        assert post(port, f"/class/{code}/vote", {"token": token, "round": 3, "choice": place % 2})[0] == 204
    panel.get_by_role("button", name="Show the votes").click()
    comes_to(teacher, lambda: panel.locator(".js-plotly-plot").evaluate(DRAWN), [[3, 2]])
    panel.get_by_role("button", name="Show the answer").click()
    expect(first.locator(PANEL)).to_contain_text("You predicted “nothing”")
    expect(second.locator(PANEL)).to_contain_text("Correct: “<s>”")
    assert "%E4%BB%8A%E5%A4%A9" in second.url  # their own sentence, still
    screenshot(first, "room-own")


def a_vote_asked_aloud_needs_one_click(teacher, first, second):
    teacher.get_by_role("button", name="Ask for votes").click()
    first.get_by_role("button", name="Vote for B").click()
    expect(first.locator(BAR + " + span")).to_have_text("Your vote is in.")
    expect(teacher.locator(".gf-room-wall")).to_contain_text("1 of 2 answered")
    screenshot(second, "room-aloud")
    teacher.get_by_role("button", name="Show the votes").click()
    few = "1 vote. A chart of the choices appears once there are 5 votes."  # too few to say what was chosen
    expect(teacher.get_by_text(few)).to_be_visible()


def test_a_server_that_is_started_anew_says_so(new_page, tmp_path):
    page = new_page(visitor="teacher")
    with serve(log=tmp_path / "first.log") as server:
        open_page(page, f"{server.url}/room")
        page.get_by_role("button", name="Open a room").click()
        expect(page.locator(BAR)).to_contain_text("0 students")
        code, port = parameters(page)["room"], server.port
        student = new_page(visitor="first")
        open_page(student, f"{server.url}/step?room={code}")
        expect(page.locator(BAR)).to_contain_text("1 student")
    with serve(log=tmp_path / "second.log", port=port):
        expect(student.locator(BAR)).to_have_text("The room has ended because the server restarted.", timeout=60_000)
        expect(page.locator(BAR)).to_have_text("The room has ended because the server restarted.", timeout=60_000)
        student.get_by_role("button", name="Leave the room").click()
        expect(student.locator(BAR)).to_have_count(0)
        assert "room" not in parameters(student)


def test_with_a_store_another_server_goes_on_where_one_was_killed(new_page, tmp_path):
    teacher, student = new_page(visitor="teacher"), new_page(visitor="first")
    with RedisServer(tmp_path) as store:
        said = {"GLASSFORMER_STORE": store.url}
        with serve(log=tmp_path / "first.log", environment=said) as server:
            open_page(teacher, f"{server.url}/room")
            teacher.get_by_role("button", name="Open a room").click()
            expect(teacher.locator(BAR)).to_contain_text("0 students")
            code, port = parameters(teacher)["room"], server.port
            open_page(student, f"{server.url}/step?room={code}")
            expect(teacher.locator(BAR)).to_contain_text("1 student")
            teacher.get_by_role("button", name="Ask for votes").click()
            student.get_by_role("button", name="Vote for B").click()
            expect(student.locator(BAR + " + span")).to_have_text("Your vote is in.")
            server.process.kill()
        with serve(log=tmp_path / "second.log", environment=said, port=port):
            for page, there in ((teacher, "1 student"), (student, "the teacher has not opened a page yet")):
                expect(page.locator(BAR)).to_contain_text(there, timeout=60_000)
            expect(student.locator(BAR + " + span")).to_have_text("Your vote is in.")
            expect(student.get_by_role("button", name="Vote for B")).to_have_count(0)
            expect(teacher.get_by_text("You are teaching in room")).to_be_visible(timeout=60_000)
            few = teacher.get_by_text("1 vote. A chart of the choices")

            def shown():  # what was clicked while the page had no server is lost
                with suppress(TimeoutError):
                    teacher.get_by_role("button", name="Show the votes").click(timeout=2000)
                return few.is_visible()

            comes_to(teacher, shown, True)
            store.stop()
            for page in (teacher, student):
                expect(page.locator(BAR)).to_contain_text(f"store of rooms at {HOST}:{store.port} does not answer")
            expect(teacher.get_by_text("rooms go on by themselves")).to_be_visible()
            screenshot(teacher, "room-without-its-store")
            menu_link(teacher, "Masks").click()  # every page goes on
            teacher.wait_for_url("**/masks?**")
            wait_for_idle(teacher)
            store.start()
            student.wait_for_url("**/masks?**")  # where the teacher has gone meanwhile
            expect(student.locator(BAR)).to_contain_text(FOLLOWS)
            expect(teacher.locator(BAR)).to_contain_text("1 student present")
