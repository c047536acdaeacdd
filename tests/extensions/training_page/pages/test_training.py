"""The Training page draws curves with snapshots on them, and a sentence over training, whatever is damaged."""

import json
import re
from dataclasses import replace

import pytest

from glassformer.extensions.doctor import examinations
from glassformer.extensions.doctor.examinations import Examinations
from glassformer.extensions.doctor.library.report import TESTS
from glassformer.extensions.snapshots import snapshot_run_jobs
from glassformer.extensions.training_page import training_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.extensions.scripts import TRAINING
from tests.glassformer.waiting import WAIT, until
from tests.pages.conftest import CHECKPOINTS, MAIN, check
from tests.pages.reading import figure, payload
from tests.pages.test_pseudo_language import spoken_whole
from tests.transformer.grown import STEPS, write_grown
from transformer.checkpoint import snapshots

CHARTS = [one.key for one in (training_pictures.losses, training_pictures.scores, training_pictures.rates)]


@pytest.fixture(scope="module")
def of_grown(tmp_path_factory):
    """A folder with a checkpoint that has snapshots."""
    return write_grown(tmp_path_factory.mktemp("own"))


@pytest.fixture
def grown(of_grown, open_page, monkeypatch):
    """A function that opens the sentence over its training."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(of_grown))
    monkeypatch.setattr(snapshot_run_jobs, "PATIENCE_SECONDS", WAIT)
    return lambda model="grown", **asked: open_page(TRAINING, model=model, training="sentence", **asked)


def unescaped(markdown):
    return re.sub(r"\\(.)", r"\1", markdown).replace("\u2060", "")


def charts_of(test):
    """The keys of the charts, in their order."""
    return [element.key for element in test.get("bidi_component") if element.key in CHARTS]


def said(test):
    return [unescaped(one.value) for kind in (test.warning, test.caption, test.info, test.error) for one in kind]


def html_of(test):
    bodies = [one.proto.body for one in test.get("html")]
    return next(body for body in bodies if "gf-grown" in body and "<tbody>" in body)


CURVE = """epoch,step,loss,dev_loss,dev_bleu,dev_chrf,learning_rate,tokens,seconds
1,1240,6.4,4.5,0.1,8.1,0.0004,638613,169.5
2,2480,5.0,3.4,9.9,25.3,0.001,1277226,399.7
3,3720,4.3,3.5,9.8,25.4,0.0005,1915839,9599.6
"""


def test_a_training_whose_card_names_no_epoch_is_drawn_with_the_best_one_and_odd_numbers_are_said(
    open_page, spoil, monkeypatch
):
    """Those that a card names are in the transcripts; what a curve may hold, in `test_curve`."""
    folder = spoil("training.csv", CURVE.encode())
    spoil("card.json", json.dumps({"training": {"command": "python -m transformer train"}}).encode())
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder.parent))
    test = open_page(TRAINING, model=folder.name)
    assert charts_of(test) == CHARTS
    for key in charts_of(test):
        assert figure(test, key)["layout"]["annotations"][0]["text"] == "best on dev: epoch 2"
        assert "The marked epoch is 2 (best on dev)." in payload(test, key)["alt"]
    assert not payload(test, training_pictures.losses.key)["clickable"]
    dev, _ = figure(test, training_pictures.losses.key)["data"]
    assert dev["hovertext"][0] == "Epoch 1, step 1,240, 638,613 target tokens, 3 min"
    spoil("training.csv", b"epoch,loss\n1,nan\n2,3\n")
    assert any("1 number in training.csv is missing, NaN or infinite" in one for one in said(check(test.run())))
    spoil("training.csv", None)
    assert any("no training.csv" in one for one in said(check(test.run())))
    assert [one.key for one in test.text_input] == [session.SOURCE]  # the page goes on


def test_snapshots_are_drawn_where_there_is_no_curve_and_a_damaged_one_is_left_out_or_says_so_in_its_row(
    open_page, tmp_path, monkeypatch
):
    folder = write_grown(tmp_path) / "grown"
    (folder / "training.csv").unlink()
    garbage, cut = (snapshots.folder_of(folder) / f"{step}{snapshots.FILE}" for step in (219, 10))
    garbage.write_bytes(b"garbage")
    cut.write_bytes(cut.read_bytes()[:-200])
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    test = open_page(TRAINING, model="grown")
    assert charts_of(test) == CHARTS[:2]
    (line,) = figure(test, CHARTS[0])["data"]
    assert line["customdata"] == [0, 10, 1200, 2208]
    assert any("is not a snapshot of step 219" in one for one in said(test))
    test = open_page(TRAINING, model="grown", training="sentence", src="abc")
    until(lambda: "is damaged" in html_of(check(test.run())))


def test_the_checkpoints_page_leads_to_the_training_of_the_model_that_is_looked_at(open_page):
    test = open_page(MAIN, model="reverse")
    test.switch_page(str(CHECKPOINTS.relative_to(MAIN.parent))).run()
    (training,) = [one.proto for one in test.get("page_link") if one.proto.page == "training"]
    assert training.label == "How it was trained"
    assert "model=reverse" in training.query_string


@pytest.mark.parametrize("name", parts_of("training", "attention training"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name])


# ------------------------------------------------------------------------------------------------ a sentence


def test_what_each_snapshot_writes_is_marked_by_the_readers_correct_output_and_hidden_from_who_guesses(grown):
    """That without one it is marked by the finished output is in the transcripts."""
    test = grown("grown@0", src="abc", ref="cbx")
    table = html_of(test)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table)[1:]
    for step, row in zip(STEPS, rows, strict=True):
        assert f">{step:,}</a>" in row
        assert f"model=grown%40{step}" in row
    assert "3 of 4" in rows[-1]
    assert "<b>c</b><b>b</b><i>a</i>" in rows[-1]
    assert re.search(r'aria-current=true><td class=""><a[^>]*>0</a>', table)
    assert any("the correct output that you gave" in one for one in said(test))
    guessing = grown(guess=1)
    assert "This shows whole outputs, so it would give away what comes next." in said(guessing)
    assert not any("<tbody>" in one.proto.body for one in guessing.get("html"))


def test_the_doctor_is_asked_about_every_snapshot(grown, monkeypatch):
    done = []

    def counted(one):
        return replace(one, look=lambda patient: done.append(1) or one.look(patient))

    tests = [counted(one) for one in TESTS if one.name in ("finite", "own_token")]
    few = Examinations(is_busy=lambda: False, tests=tests)
    monkeypatch.setattr(examinations, "examinations", lambda: few)
    test = grown(src="abc")
    assert ">Doctor</th>" not in html_of(test)
    check(test.button(key="examine_snapshots").click().run())
    until(lambda: len(done) == len(tests) * len(STEPS))  # before the page is drawn again
    until(lambda: html_of(check(test.run())).count(f"{len(few.tests)} well") == len(STEPS))
    assert ">Doctor</th>" in html_of(test)
    assert "examine_snapshots" not in [one.key for one in test.button]


def test_what_comes_later_is_drawn_later_and_a_large_model_begins_when_it_is_asked(grown, monkeypatch):
    monkeypatch.setattr(snapshot_run_jobs, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(snapshot_run_jobs, "begins_by_itself", lambda checkpoint: False)
    test = grown(src="begun")
    assert html_of(test).count("…") == len(STEPS)
    check(test.button(key="growth_begin").click().run())
    until(lambda: "…" not in html_of(check(test.run())))
    assert re.search(r"\d of 6", html_of(test))
    assert "growth_begin" not in [one.key for one in test.button]
