"""Lessons that a teacher wrote: what is right opens, what is wrong gets a sentence, and neither stops the other."""

import textwrap

import pytest

import transformer
from transformer.lessons import Case, LessonError, lessons, pose, read_folder

MINE = """
name = "mine"
title = "A word of ours"
teaches = "What the decoder reads first."
minutes = 3

[[step]]
page = "step"
link = { step = "1", guess = "1" }
cover = ["*"]
[step.ask]
oracle = "read_piece"
kind = "law"
question = "What does it read first?"
[step.ask.choices]
nothing = "nothing"
[step.reveal]
always = "It reads {start}."
"""


def write(folder, name, text):
    (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")


def test_a_lesson_in_one_language_opens(tmp_path):
    write(tmp_path, "mine.toml", MINE)
    found, problems = read_folder(tmp_path)
    assert list(found) == ["mine"]
    assert not problems
    assert found["mine"].title.said({}) == "A word of ours"
    assert found["mine"].steps[0].reveal["always"].said({"start": "<s>"}).in_language("zh") == "It reads <s>."


def test_a_lesson_in_chinese_alone_opens(tmp_path):
    write(tmp_path, "mine.toml", MINE.replace('"A word of ours"', '{ zh = "我们的词" }'))
    found, problems = read_folder(tmp_path)
    assert found["mine"].title.said({}) == "我们的词"
    assert not problems


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('oracle = "read_piece"', 'oracle = "read_minds"'), "`oracle` is 'read_minds'; known are "),
        (('page = "step"', 'page = "steps"'), "Step 1: `page` is 'steps'; known are "),
        (("minutes = 3", "minutes = 'three'"), "`minutes` is 'three', expected a int"),
        (("minutes = 3\n", "minutes = 3\nmarks = 5\n"), "the key 'marks' is unknown; known are "),
        (("{start}", "{start.__class__}"), "asks for 'start.__class__'; a value is a name"),
        (("{start}", "{start"), "is no template"),
        (('question = "What does it read first?"', 'question = ""'), "`question` lacks a text"),
        (('name = "mine"', 'name = "one-piece"'), "is that of another lesson; choose another."),
        (('name = "mine"', 'name = "Mine!"'), "expected small letters, digits and hyphens"),
        (("[[step]]", "[[step"), "is no TOML"),
    ],
)
def test_what_is_wrong_gets_one_sentence_and_the_others_open(tmp_path, change, said):
    write(tmp_path, "a.toml", MINE.replace(*change))
    write(tmp_path, "b.toml", MINE.replace('"mine"', '"other"'))
    found, problems = read_folder(tmp_path)
    assert list(found) == ["other"]
    assert len(problems) == 1
    assert "a.toml" in problems[0]
    assert said in problems[0]


def test_two_of_one_name_and_an_empty_folder(tmp_path):
    assert read_folder(tmp_path)[1][0].endswith("holds no .toml file.")
    write(tmp_path, "a.toml", MINE)
    write(tmp_path, "b.toml", MINE)
    found, problems = read_folder(tmp_path)
    assert list(found) == ["mine"]
    assert "b.toml" in problems[0]
    assert read_folder(tmp_path / "nowhere")[1]


def test_the_plan_needs_no_folder():
    assert "one-piece" in lessons()


@pytest.mark.parametrize(
    "change",
    [
        ("It reads {start}.", "It reads {stop}."),
        ("always = ", "never = "),
        ('nothing = "nothing"', 'nobody = "nobody"'),
        ('step = "1"', 'step = "{place}"'),
        ("It reads {start}.", "It reads {start:.2f}."),
    ],
)
def test_a_text_that_asks_for_what_is_not_there_is_said(tmp_path, change):
    write(tmp_path, "mine.toml", MINE.replace(*change))
    step = read_folder(tmp_path)[0]["mine"].steps[0]
    checkpoint = transformer.load("checkpoints/reverse")
    with pytest.raises(LessonError, match="mend the lesson's file"):
        pose(step, Case(checkpoint=checkpoint, trace=checkpoint.run("glass")))
