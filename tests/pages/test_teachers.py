"""The page for teachers: the link that it builds opens what was chosen, and what is covered is not sent."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.pages.conftest import ROOT, STEP, check
from ui.state import covering, own_lessons
from ui.teaching import links as panels
from ui.teaching.example import EXAMPLE

TEACHERS = ROOT / "pages" / "learn" / "teachers.py"


def built(test):
    """The link's path and parameters."""
    address = urlsplit(test.code[0].value)
    return address.path.rpartition("/")[2], dict(parse_qsl(address.query))


def drawn(test):
    return {element.key for element in test.get("bidi_component")}


def test_the_link_says_page_checkpoint_sentence_and_what_is_covered(open_page):
    test = check(open_page(TEACHERS).run())
    assert built(test) == ("step", {"model": "zh-en", "src": "我喜欢喝咖啡。"})
    test.selectbox(key=panels.PAGE).set_value("attention")
    test.multiselect(key=panels.COVERED).set_value(["candidates", "head_map"])
    test.toggle(key=panels.GUESS).set_value(True)
    path, said = built(check(test.run()))
    assert path == "attention"
    assert said == {"model": "zh-en", "src": "我喜欢喝咖啡。", "guess": "1", "cover": "candidates.head_map"}


def test_a_step_of_a_lesson_brings_its_own_page(open_page):
    test = check(open_page(TEACHERS).run())
    test.selectbox(key=panels.STEP).set_value("one-piece.3")
    path, said = built(check(test.run()))
    assert path == "step"
    assert said["lesson"] == "one-piece.3"
    assert test.selectbox(key=panels.PAGE).disabled


def test_what_the_link_covers_is_not_sent_until_its_reader_shows_it(open_page):
    test = open_page(STEP)
    test.query_params["cover"] = "candidates.cross_map"
    check(test.run())
    assert not {"candidates", "cross_map"} & drawn(test)
    assert "entropy" in drawn(test)
    assert test.query_params["cover"] in ("candidates.cross_map", ["candidates.cross_map"])
    check(test.button(key="show_covered").click().run())
    assert {"candidates", "cross_map", "entropy"} <= drawn(test)
    assert "cover" not in test.query_params


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("candidates.entropy", ("candidates", "entropy")),
        ("*", ("*",)),
        ("<b>.candidates.candidates..", ("candidates",)),
        ("A" * 1000, ()),
        (".".join(f"w{'x' * i}" for i in range(40)), tuple(f"w{'x' * i}" for i in range(12))),
    ],
)
def test_words_that_are_none_are_left_out(written, words):
    assert covering.read(written) == words
    assert covering.read(covering.write(words)) == words


def test_lessons_of_a_folder_open_and_problems_are_said(open_page, tmp_path, monkeypatch):
    (tmp_path / "good.toml").write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / "bad.toml").write_text(EXAMPLE.replace("read_piece", "read_minds"), encoding="utf-8")
    monkeypatch.setenv(own_lessons.ENVIRONMENT, str(tmp_path))
    test = check(open_page(TEACHERS).run())
    assert "our-first.1" in test.selectbox(key=panels.STEP).options or any(
        "What does it read?" in option for option in test.selectbox(key=panels.STEP).options
    )
    assert len(test.warning) == 1
    assert "bad" in test.warning[0].value
    (tmp_path / "bad.toml").unlink()
    assert not check(test.run()).warning


def test_the_folder_is_named_when_the_app_starts(monkeypatch):
    monkeypatch.delenv(own_lessons.ENVIRONMENT, raising=False)
    assert own_lessons.folder([]) is None
    assert str(own_lessons.folder(["--lessons", "there"])) == "there"
    assert str(own_lessons.folder(["--lessons=here"])) == "here"
